#include "caffe/layer_factory.hpp"
#include "caffe/layers/recurrent_base.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/lstm_unit.hpp"

namespace caffe {
namespace {

// Long short-term memory. Parameters: W_xc (4D,I), b_c (4D), [W_xc_static (4D,S)], W_hc (4D,D); the
// gates lie in the order i, f, o, g.
class LSTMLayer final : public RecurrentBase {
 public:
  using RecurrentBase::RecurrentBase;

  std::vector<ParamDeclaration> Params(const std::vector<Shape>& bottoms) const override {
    const Sizes sizes = SizesOf(bottoms);
    const FillerParameter &weights = options().weight_filler(), &bias = options().bias_filler();
    std::vector<ParamDeclaration> params = {{Shape{gates(), sizes.inputs}, weights},
                                            {Shape{gates()}, bias}};
    if (has_static_input()) params.push_back({Shape{gates(), sizes.static_inputs}, weights});
    params.push_back({Shape{gates(), width()}, weights});
    return params;
  }

  void EmitForward(GraphBuilder& graph) const override {
    const Sizes sizes = SizesOf(graph);
    Value* products = InputProducts(graph, 0, gates());
    LoadInitialState(graph, kH);
    LoadInitialState(graph, kC);
    std::vector<Value*> outputs;
    for (int64_t t = 0; t < sizes.steps; ++t) {
      LoadCont(graph, t);
      graph.Emit(ops::ScaleShift{kItems}, {H(graph, t - 1), Cont(graph, t)}, {Hidden(graph, t)});
      Value* fed_back = Times(graph, StrCat("h_products", t), Hidden(graph, t),
                              graph.param(recurrent_weights()), sizes.items, gates(), width());
      graph.Emit(ops::EltwiseSum{}, {Step(graph, "x_step", products, t, gates()), fed_back},
                 {GateInputs(graph, t)});
      graph.Emit(ops::LstmUnit{}, {C(graph, t - 1), GateInputs(graph, t), Cont(graph, t)},
                 {C(graph, t), H(graph, t)});
      outputs.push_back(H(graph, t));
    }
    graph.Emit(ops::View{}, {Join(graph, "y", outputs, width())}, {graph.top(0)});
    KeepState(graph, kH, outputs.back());
    KeepState(graph, kC, C(graph, sizes.steps - 1));
  }

  void EmitBackward(GraphBuilder& graph) const override {
    const Sizes sizes = SizesOf(graph);
    const int64_t rows = sizes.steps * sizes.items;
    Value* dy = graph.Scratch("dy", Shape{rows, width()});
    graph.Emit(ops::View{}, {graph.top_diff(0)}, {dy});
    Value *dh = nullptr, *dc = nullptr;
    std::vector<Value*> dgates(sizes.steps), hidden(sizes.steps);
    for (int64_t t = sizes.steps - 1; t >= 0; --t) {
      hidden[t] = Hidden(graph, t);
      dgates[t] = graph.Scratch(StrCat("dgates", t), Shape{sizes.items, gates()});
      Value* dh_total = Sum(graph, StrCat("dh_sum", t), {Step(graph, "dy", dy, t, width()), dh});
      Value* dc_prev =
          t == 0 ? nullptr : graph.Scratch(StrCat("dc", t), Shape{sizes.items, width()});
      graph.Emit(ops::LstmUnitGrad{},
                 {C(graph, t - 1), GateInputs(graph, t), Cont(graph, t), C(graph, t), dc, dh_total},
                 {dc_prev, dgates[t]});
      if (t == 0) break;
      Value* dhidden = TimesGrad(graph, StrCat("dhidden", t), dgates[t],
                                 graph.param(recurrent_weights()), sizes.items, gates(), width());
      dh = ScaleItems(graph, StrCat("dh", t), dhidden, Cont(graph, t));
      dc = dc_prev;
    }
    Value* all_dgates = Join(graph, "dgates", dgates, gates());
    WeightsGrad(graph, all_dgates, Join(graph, "hidden", hidden, width()),
                graph.param_diff(recurrent_weights()), rows, gates(), width());
    InputProductsGrad(graph, 0, gates(), all_dgates);
  }

 private:
  static constexpr int kH = 0, kC = 1;

  int num_states() const override { return 2; }

  // h and c after step t (-1: before the first), what a step's gates see, and h as it is fed back:
  // 0 where a sequence begins.
  Value* H(GraphBuilder& graph, int64_t t) const { return State(graph, "h", kH, t); }
  Value* C(GraphBuilder& graph, int64_t t) const { return State(graph, "c", kC, t); }
  Value* State(GraphBuilder& graph, const char* name, int state, int64_t t) const {
    if (t < 0) return InitialState(graph, state);
    return graph.Saved(StrCat(name, t), Shape{SizesOf(graph).items, width()});
  }
  Value* GateInputs(GraphBuilder& graph, int64_t t) const {
    return graph.Saved(StrCat("gates", t), Shape{SizesOf(graph).items, gates()});
  }
  Value* Hidden(GraphBuilder& graph, int64_t t) const {
    return graph.Saved(StrCat("hidden", t), Shape{SizesOf(graph).items, width()});
  }
  int64_t gates() const { return 4 * width(); }
  int recurrent_weights() const { return has_static_input() ? 3 : 2; }
};

REGISTER_LAYER_CLASS(LSTM, "recurrent_param");

}  // namespace
}  // namespace caffe
