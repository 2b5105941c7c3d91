#include "caffe/layer_factory.hpp"
#include "caffe/layers/recurrent_base.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/pointwise.hpp"

namespace caffe {
namespace {

// h = tanh(W_hh h' + W_xh x + b_h), o = tanh(W_ho h + b_o), where h' is h of the previous step.
// Parameters: W_xh (D,I), b_h (D), [W_xh_static (D,S)], W_hh (D,D), W_ho (D,D), b_o (D).
class RNNLayer final : public RecurrentBase {
 public:
  using RecurrentBase::RecurrentBase;

  std::vector<ParamDeclaration> Params(const std::vector<Shape>& bottoms) const override {
    const Sizes sizes = SizesOf(bottoms);
    const FillerParameter &weights = options().weight_filler(), &bias = options().bias_filler();
    std::vector<ParamDeclaration> params = {{Shape{width(), sizes.inputs}, weights},
                                            {Shape{width()}, bias}};
    if (has_static_input()) params.push_back({Shape{width(), sizes.static_inputs}, weights});
    params.push_back({Shape{width(), width()}, weights});
    params.push_back({Shape{width(), width()}, weights});
    params.push_back({Shape{width()}, bias});
    return params;
  }

  void EmitForward(GraphBuilder& graph) const override {
    const Sizes sizes = SizesOf(graph);
    const int64_t rows = sizes.steps * sizes.items;
    Value* products = InputProducts(graph, width());
    LoadInitialState(graph, 0);
    std::vector<Value*> states;
    for (int64_t t = 0; t < sizes.steps; ++t) {
      LoadCont(graph, t);
      graph.Emit(ops::ScaleShift{kItems}, {H(graph, t - 1), Cont(graph, t)}, {Hidden(graph, t)});
      Value* fed_back = Times(graph, StrCat("h_products", t), Hidden(graph, t),
                              graph.param(recurrent_weights()), sizes.items, width(), width());
      Value* sum =
          Sum(graph, StrCat("sum", t), {Step(graph, "x_step", products, t, width()), fed_back});
      graph.Emit(ops::Tanh{}, {sum}, {H(graph, t)});
      states.push_back(H(graph, t));
    }
    graph.Emit(ops::Concat{.axis = 0}, states, {AllH(graph)});
    Value* outputs = Times(graph, "outputs", AllH(graph), graph.param(output_weights()), rows,
                           width(), width(), graph.param(output_weights() + 1));
    graph.Emit(ops::Tanh{}, {outputs}, {O(graph)});
    graph.Emit(ops::View{}, {O(graph)}, {graph.top(0)});
    KeepState(graph, 0, states.back());
  }

  void EmitBackward(GraphBuilder& graph) const override {
    const Sizes sizes = SizesOf(graph);
    const int64_t rows = sizes.steps * sizes.items;
    Value* dy = graph.Scratch("dy", Shape{rows, width()});
    graph.Emit(ops::View{}, {graph.top_diff(0)}, {dy});
    Value* doutputs = graph.Scratch("doutputs", Shape{rows, width()});
    graph.Emit(ops::TanhGrad{}, {O(graph), dy}, {doutputs});
    WeightsGrad(graph, doutputs, AllH(graph), graph.param_diff(output_weights()), rows, width(),
                width());
    graph.Emit(ops::SumToAxes{{.axis = 1, .num_axes = 1}}, {doutputs},
               {graph.param_diff(output_weights() + 1)});
    Value* from_outputs = TimesGrad(graph, "dh_outputs", doutputs, graph.param(output_weights()),
                                    rows, width(), width());
    Value* dh = nullptr;
    std::vector<Value*> dsums(sizes.steps), hidden(sizes.steps);
    for (int64_t t = sizes.steps - 1; t >= 0; --t) {
      hidden[t] = Hidden(graph, t);
      Value* dh_total =
          Sum(graph, StrCat("dh_sum", t), {Step(graph, "dh_step", from_outputs, t, width()), dh});
      dsums[t] = graph.Scratch(StrCat("dsum", t), Shape{sizes.items, width()});
      graph.Emit(ops::TanhGrad{}, {H(graph, t), dh_total}, {dsums[t]});
      if (t == 0) break;
      Value* dhidden = TimesGrad(graph, StrCat("dhidden", t), dsums[t],
                                 graph.param(recurrent_weights()), sizes.items, width(), width());
      dh = ScaleItems(graph, StrCat("dh", t), dhidden, Cont(graph, t));
    }
    Value* all_dsums = Join(graph, "dsums", dsums, width());
    WeightsGrad(graph, all_dsums, Join(graph, "hidden", hidden, width()),
                graph.param_diff(recurrent_weights()), rows, width(), width());
    InputProductsGrad(graph, width(), all_dsums);
  }

 private:
  int num_states() const override { return 1; }
  int recurrent_weights() const { return has_static_input() ? 3 : 2; }
  int output_weights() const { return recurrent_weights() + 1; }

  // h after step t (-1: before the first), the recurrent h (0 at the start of a sequence), and h
  // and o of all steps.
  Value* H(GraphBuilder& graph, int64_t t) const {
    if (t < 0) return InitialState(graph, 0);
    return graph.Saved(StrCat("h", t), Shape{SizesOf(graph).items, width()});
  }
  Value* Hidden(GraphBuilder& graph, int64_t t) const {
    return graph.Saved(StrCat("hidden", t), Shape{SizesOf(graph).items, width()});
  }
  Value* AllH(GraphBuilder& graph) const { return All(graph, "all_h"); }
  Value* O(GraphBuilder& graph) const { return All(graph, "o"); }
  Value* All(GraphBuilder& graph, const char* name) const {
    const Sizes sizes = SizesOf(graph);
    return graph.Saved(name, Shape{sizes.steps * sizes.items, width()});
  }
};

REGISTER_LAYER_CLASS(RNN, "recurrent_param");

}  // namespace
}  // namespace caffe
