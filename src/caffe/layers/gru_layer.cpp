#include <array>

#include "caffe/layer_factory.hpp"
#include "caffe/layers/recurrent_base.hpp"
#include "caffe/ops/arrange.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

// Gated recurrent unit (Cho et al. 2014); h' is h of the previous step, 0 at the start of a
// sequence:
//   z = sigmoid(W_z x + R_z h' + b_z),  r = sigmoid(W_r x + R_r h' + b_r)
//   n = tanh(W_n x + R_n (r h') + b_n),  h = n + z (h' - n)
// With reset_after, as in cuDNN and PyTorch:  n = tanh(W_n x + r (R_n h' + b_rn) + b_n)
// Parameters of a part: W_xc (3D,I), b_c (3D), [W_xc_static (3D,S)], R_z, R_r, R_n (D,D each),
// [b_rn (D)]; the rows of W_xc and b_c are ordered z, r, n.
class GRULayer final : public RecurrentBase {
 public:
  using RecurrentBase::RecurrentBase;

 private:
  enum Gates { kZ, kR, kN };
  static constexpr std::array<Gates, 3> kAll = {kZ, kR, kN};

  bool can_reset_after() const override { return true; }
  int num_states() const override { return 1; }
  int64_t gates() const override { return 3 * width(); }

  std::vector<ParamDeclaration> PartParams(int64_t inputs, int64_t static_inputs) const override {
    const FillerParameter &weights = options().weight_filler(), &bias = options().bias_filler();
    std::vector<ParamDeclaration> params = {{Shape{gates(), inputs}, weights},
                                            {Shape{gates()}, bias}};
    if (static_inputs > 0) params.push_back({Shape{gates(), static_inputs}, weights});
    for (size_t i = 0; i < kAll.size(); ++i) params.push_back({Shape{width(), width()}, weights});
    if (resets_after()) params.push_back({Shape{width()}, bias});
    return params;
  }

  void EmitPart(GraphBuilder& graph, const Part& part, Value* y) const override {
    std::vector<Value*> inputs = {InputProducts(graph, part)}, outputs = {y};
    for (const Gates gate : kAll) inputs.push_back(Weights(graph, part, gate));
    inputs.insert(inputs.end(), {Cont(graph), part.initial[0]});
    for (const Gates gate : kAll)
      outputs.push_back(graph.with_backward() ? Gate(graph, part, gate) : nullptr);
    const ops::Recurrence recurrence = RecurrenceOf(graph, part);
    if (resets_after()) {
      inputs.push_back(PartParam(graph, part, fed_bias(part)));
      outputs.push_back(graph.with_backward() ? Fed(graph, part) : nullptr);
      outputs.push_back(part.last[0]);
      graph.Emit(ops::GruResetAfterSteps{recurrence}, inputs, outputs);
    } else {
      outputs.push_back(part.last[0]);
      graph.Emit(ops::GruSteps{recurrence}, inputs, outputs);
    }
  }

  Value* EmitPartGrad(GraphBuilder& graph, const Part& part, Value* y, Value* dy) const override {
    std::vector<Value*> inputs, dgates;
    for (const Gates gate : kAll) inputs.push_back(Weights(graph, part, gate));
    inputs.insert(inputs.end(), {Cont(graph), part.initial[0], y});
    for (const Gates gate : kAll) inputs.push_back(Gate(graph, part, gate));
    if (resets_after()) inputs.push_back(Fed(graph, part));
    inputs.insert(inputs.end(), {dy, part.dlast[0]});
    for (const Gates gate : kAll)
      dgates.push_back(Rows(graph, part.Named(StrCat("dgate", gate)), width()));
    Value* hidden = Rows(graph, part.Named("hidden"), width());
    const ops::Recurrence recurrence = RecurrenceOf(graph, part);
    std::vector<Value*> outputs = dgates;
    // The factors of the gradient of R_n.
    Value *dproduct = dgates[kN], *factor = hidden;
    if (resets_after()) {
      dproduct = Rows(graph, part.Named("dfed"), width());
      outputs.insert(outputs.end(), {dproduct, hidden, part.dinitial[0]});
      graph.Emit(ops::GruResetAfterStepsGrad{recurrence}, inputs, outputs);
      graph.Emit(ops::SumToAxes{{.axis = 1, .num_axes = 1}}, {dproduct},
                 {graph.param_diff(part.first_param + fed_bias(part))});
    } else {
      factor = Rows(graph, part.Named("reset"), width());
      outputs.insert(outputs.end(), {hidden, factor, part.dinitial[0]});
      graph.Emit(ops::GruStepsGrad{recurrence}, inputs, outputs);
    }
    for (const Gates gate : {kZ, kR})
      WeightsGrad(graph, part, recurrent_weights(part) + gate, dgates[gate], hidden, width(),
                  width());
    WeightsGrad(graph, part, recurrent_weights(part) + kN, dproduct, factor, width(), width());
    Value* all_dgates = Rows(graph, part.Named("all_dgates"), gates());
    graph.Emit(ops::Concat{.axis = 1}, dgates, {all_dgates});
    return all_dgates;
  }

  // R_z; R_r and R_n follow.
  static int recurrent_weights(const Part& part) { return part.has_static_input ? 3 : 2; }
  Value* Weights(GraphBuilder& graph, const Part& part, Gates gate) const {
    return PartParam(graph, part, recurrent_weights(part) + gate);
  }
  int fed_bias(const Part& part) const { return recurrent_weights(part) + kN + 1; }
  bool resets_after() const { return options().reset_after(); }
  // R_n h' + b_rn
  Value* Fed(GraphBuilder& graph, const Part& part) const {
    return SavedRows(graph, part.Named("fed"), width());
  }
  Value* Gate(GraphBuilder& graph, const Part& part, Gates gate) const {
    return SavedRows(graph, part.Named(StrCat("gate", gate)), width());
  }
};

REGISTER_LAYER_CLASS(GRU, "recurrent_param");

}  // namespace
}  // namespace caffe
