#include "caffe/layer_factory.hpp"
#include "caffe/layers/recurrent_base.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/pointwise.hpp"

namespace caffe {
namespace {

// h = tanh(W_hh h' + W_xh x + b_h), o = tanh(W_ho h + b_o), where h' is h of the previous step.
// Parameters of a part: W_xh (D,I), b_h (D), [W_xh_static (D,S)], W_hh (D,D), W_ho (D,D), b_o (D).
class RNNLayer final : public RecurrentBase {
 public:
  using RecurrentBase::RecurrentBase;

 private:
  int num_states() const override { return 1; }
  int64_t gates() const override { return width(); }

  std::vector<ParamDeclaration> PartParams(int64_t inputs, int64_t static_inputs) const override {
    const FillerParameter &weights = options().weight_filler(), &bias = options().bias_filler();
    std::vector<ParamDeclaration> params = {{Shape{width(), inputs}, weights},
                                            {Shape{width()}, bias}};
    if (static_inputs > 0) params.push_back({Shape{width(), static_inputs}, weights});
    params.push_back({Shape{width(), width()}, weights});
    params.push_back({Shape{width(), width()}, weights});
    params.push_back({Shape{width()}, bias});
    return params;
  }

  void EmitPart(GraphBuilder& graph, const Part& part, Value* y) const override {
    const int weights = recurrent_weights(part);
    graph.Emit(
        ops::RnnSteps{RecurrenceOf(graph, part)},
        {InputProducts(graph, part), PartParam(graph, part, weights), Cont(graph), part.initial[0]},
        {States(graph, part), part.last[0]});
    Value* outputs = Times(graph, part.Named("o_inputs"), States(graph, part),
                           PartParam(graph, part, weights + 1), SizesOf(graph).rows(), width(),
                           width(), PartParam(graph, part, weights + 2));
    graph.Emit(ops::Tanh{}, {outputs}, {Outputs(graph, part)});
    graph.Emit(ops::View{}, {Outputs(graph, part)}, {y});
  }

  Value* EmitPartGrad(GraphBuilder& graph, const Part& part, Value*, Value* dy) const override {
    const int weights = recurrent_weights(part);
    Value* dh = nullptr;
    if (dy != nullptr) {
      Value* doutputs = Rows(graph, part.Named("doutputs"), width());
      graph.Emit(ops::TanhGrad{}, {Outputs(graph, part), dy}, {doutputs});
      WeightsGrad(graph, part, weights + 1, doutputs, States(graph, part), width(), width());
      graph.Emit(ops::SumToAxes{{.axis = 1, .num_axes = 1}}, {doutputs},
                 {graph.param_diff(part.first_param + weights + 2)});
      dh = TimesGrad(graph, part.Named("dh"), doutputs, PartParam(graph, part, weights + 1),
                     SizesOf(graph).rows(), width(), width());
    }
    Value* dproducts = Rows(graph, part.Named("dproducts"), width());
    Value* hidden = Rows(graph, part.Named("hidden"), width());
    graph.Emit(ops::RnnStepsGrad{RecurrenceOf(graph, part)},
               {PartParam(graph, part, weights), Cont(graph), part.initial[0], States(graph, part),
                dh, part.dlast[0]},
               {dproducts, hidden, part.dinitial[0]});
    WeightsGrad(graph, part, weights, dproducts, hidden, width(), width());
    return dproducts;
  }

  // W_hh; W_ho and b_o follow.
  static int recurrent_weights(const Part& part) { return part.has_static_input ? 3 : 2; }
  // h and o of all steps.
  Value* States(GraphBuilder& graph, const Part& part) const {
    return SavedRows(graph, part.Named("h"), width(), SavedAs::kData);
  }
  Value* Outputs(GraphBuilder& graph, const Part& part) const {
    return SavedRows(graph, part.Named("o"), width());
  }
};

REGISTER_LAYER_CLASS(RNN, "recurrent_param");

}  // namespace
}  // namespace caffe
