#include <array>

#include "caffe/layer_factory.hpp"
#include "caffe/layers/recurrent_base.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/pointwise.hpp"

namespace caffe {
namespace {

// Gated recurrent unit (Cho et al. 2014); h' is h of the previous step, 0 at the start of a
// sequence:
//   z = sigmoid(W_z x + R_z h' + b_z),  r = sigmoid(W_r x + R_r h' + b_r)
//   n = tanh(W_n x + R_n (r h') + b_n),  h = n + z (h' - n)
// Parameters: W_xc (3D,I), b_c (3D), [W_xc_static (3D,S)], R_z, R_r, R_n (D,D each); the rows of
// W_xc and b_c are ordered z, r, n.
class GRULayer final : public RecurrentBase {
 public:
  using RecurrentBase::RecurrentBase;

  std::vector<ParamDeclaration> Params(const std::vector<Shape>& bottoms) const override {
    const Sizes sizes = SizesOf(bottoms);
    const FillerParameter &weights = options().weight_filler(), &bias = options().bias_filler();
    std::vector<ParamDeclaration> params = {{Shape{gates(), sizes.inputs}, weights},
                                            {Shape{gates()}, bias}};
    if (has_static_input()) params.push_back({Shape{gates(), sizes.static_inputs}, weights});
    for (int gate = 0; gate < 3; ++gate) params.push_back({Shape{width(), width()}, weights});
    return params;
  }

  void EmitForward(GraphBuilder& graph) const override {
    const Sizes sizes = SizesOf(graph);
    Value* products = InputProducts(graph, gates());
    LoadInitialState(graph, 0);
    std::vector<Value*> states;
    for (int64_t t = 0; t < sizes.steps; ++t) {
      LoadCont(graph, t);
      graph.Emit(ops::ScaleShift{kItems}, {H(graph, t - 1), Cont(graph, t)}, {Hidden(graph, t)});
      Value* inputs = Step(graph, "x_step", products, t, gates());
      graph.Emit(ops::Sigmoid{}, {GateInput(graph, t, kZ, inputs, Hidden(graph, t))},
                 {Gate(graph, t, kZ)});
      graph.Emit(ops::Sigmoid{}, {GateInput(graph, t, kR, inputs, Hidden(graph, t))},
                 {Gate(graph, t, kR)});
      graph.Emit(ops::EltwiseProd{}, {Gate(graph, t, kR), Hidden(graph, t)}, {Reset(graph, t)});
      graph.Emit(ops::Tanh{}, {GateInput(graph, t, kN, inputs, Reset(graph, t))},
                 {Gate(graph, t, kN)});
      graph.Emit(ops::EltwiseSum{.coefficients = {1, -1}}, {Hidden(graph, t), Gate(graph, t, kN)},
                 {Difference(graph, t)});
      Value* kept = graph.Scratch(StrCat("kept", t), graph.shape(Hidden(graph, t)));
      graph.Emit(ops::EltwiseProd{}, {Gate(graph, t, kZ), Difference(graph, t)}, {kept});
      graph.Emit(ops::EltwiseSum{}, {Gate(graph, t, kN), kept}, {H(graph, t)});
      states.push_back(H(graph, t));
    }
    graph.Emit(ops::View{}, {Join(graph, "y", states, width())}, {graph.top(0)});
    KeepState(graph, 0, states.back());
  }

  void EmitBackward(GraphBuilder& graph) const override {
    const Sizes sizes = SizesOf(graph);
    const int64_t rows = sizes.steps * sizes.items;
    Value* dy = graph.Scratch("dy", Shape{rows, width()});
    graph.Emit(ops::View{}, {graph.top_diff(0)}, {dy});
    Value* dh = nullptr;
    std::vector<Value*> dgates[3], hidden, reset;
    for (std::vector<Value*>& steps : dgates) steps.resize(sizes.steps);
    for (int64_t t = sizes.steps - 1; t >= 0; --t) {
      Value* dh_total = Sum(graph, StrCat("dh_sum", t), {Step(graph, "dy", dy, t, width()), dh});
      Value* dhidden =
          StepGrad(graph, t, dh_total, {&dgates[kZ][t], &dgates[kR][t], &dgates[kN][t]});
      if (t > 0) dh = ScaleItems(graph, StrCat("dh", t), dhidden, Cont(graph, t));
    }
    for (int64_t t = 0; t < sizes.steps; ++t) {
      hidden.push_back(Hidden(graph, t));
      reset.push_back(Reset(graph, t));
    }
    Value* all_hidden = Join(graph, "all_hidden", hidden, width());
    Value* all_reset = Join(graph, "all_reset", reset, width());
    std::vector<Value*> parts;
    for (const int gate : {kZ, kR, kN}) {
      parts.push_back(Join(graph, StrCat("dgates", gate), dgates[gate], width()));
      WeightsGrad(graph, parts.back(), gate == kN ? all_reset : all_hidden,
                  graph.param_diff(recurrent_weights(gate)), rows, width(), width());
    }
    Value* all_dgates = graph.Scratch("all_dgates", Shape{rows, gates()});
    graph.Emit(ops::Concat{.axis = 1}, parts, {all_dgates});
    InputProductsGrad(graph, gates(), all_dgates);
  }

 private:
  enum Gates { kZ, kR, kN };

  // Bottom 1 is optional.
  bool has_cont() const override { return param().bottom_size() > 1 || exposes_states(); }

  int num_states() const override { return 1; }
  int64_t gates() const { return 3 * width(); }
  int recurrent_weights(int gate) const { return (has_static_input() ? 3 : 2) + gate; }

  // W x + b of one gate, plus R times its recurrent input `fed`.
  Value* GateInput(GraphBuilder& graph, int64_t t, int gate, Value* inputs, Value* fed) const {
    const int64_t items = SizesOf(graph).items;
    const std::string suffix = StrCat(gate, "_", t);
    Value* input = graph.Scratch("input" + suffix, Shape{items, width()});
    graph.Emit(ops::SliceOf{.axis = 1, .offset = gate * width()}, {inputs}, {input});
    Value* fed_back = Times(graph, "fed" + suffix, fed, graph.param(recurrent_weights(gate)), items,
                            width(), width());
    return Sum(graph, "sum" + suffix, {input, fed_back});
  }

  // Returns the gradient of h' in step t, given that of h; `dgates` receive those of the gates'
  // inputs.
  Value* StepGrad(GraphBuilder& graph, int64_t t, Value* dh,
                  const std::array<Value**, 3>& dgates) const {
    const auto scratch = [&](const char* name) {
      return graph.Scratch(StrCat(name, t), graph.shape(dh));
    };
    const auto product = [&](const char* name, Value* a, Value* b) {
      Value* c = scratch(name);
      graph.Emit(ops::EltwiseProd{}, {a, b}, {c});
      return c;
    };
    const auto times_weights = [&](const char* name, int gate) {
      return TimesGrad(graph, StrCat(name, t), *dgates[gate], graph.param(recurrent_weights(gate)),
                       SizesOf(graph).items, width(), width());
    };
    *dgates[kZ] = scratch("dz_input");
    *dgates[kR] = scratch("dr_input");
    *dgates[kN] = scratch("dn_input");
    Value* ddifference = product("ddifference", dh, Gate(graph, t, kZ));
    graph.Emit(ops::SigmoidGrad{}, {Gate(graph, t, kZ), product("dz", dh, Difference(graph, t))},
               {*dgates[kZ]});
    Value* dn = scratch("dn");
    graph.Emit(ops::EltwiseSum{.coefficients = {1, -1}}, {dh, ddifference}, {dn});
    graph.Emit(ops::TanhGrad{}, {Gate(graph, t, kN), dn}, {*dgates[kN]});
    Value* dreset = times_weights("dreset", kN);
    graph.Emit(ops::SigmoidGrad{}, {Gate(graph, t, kR), product("dr", dreset, Hidden(graph, t))},
               {*dgates[kR]});
    return Sum(graph, StrCat("dhidden", t),
               {ddifference, product("dh_reset", dreset, Gate(graph, t, kR)),
                times_weights("dh_z", kZ), times_weights("dh_r", kR)});
  }

  // h after step t (-1: before the first), h', the gates, r h' and h' - n.
  Value* H(GraphBuilder& graph, int64_t t) const {
    return t < 0 ? InitialState(graph, 0) : Saved(graph, "h", t);
  }
  Value* Hidden(GraphBuilder& graph, int64_t t) const { return Saved(graph, "hidden", t); }
  Value* Gate(GraphBuilder& graph, int64_t t, int gate) const {
    return Saved(graph, StrCat("gate", gate, "_"), t);
  }
  Value* Reset(GraphBuilder& graph, int64_t t) const { return Saved(graph, "reset", t); }
  Value* Difference(GraphBuilder& graph, int64_t t) const { return Saved(graph, "difference", t); }
  Value* Saved(GraphBuilder& graph, const std::string& name, int64_t t) const {
    return graph.Saved(StrCat(name, t), Shape{SizesOf(graph).items, width()});
  }
};

REGISTER_LAYER_CLASS(GRU, "recurrent_param");

}  // namespace
}  // namespace caffe
