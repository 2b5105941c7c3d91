#include "caffe/layers/lstm_base.hpp"

#include "caffe/ops/activations.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/lstm_unit.hpp"

namespace caffe {

void LstmBase::EmitForward(GraphBuilder& graph) const {
  const Sizes sizes = SizesOf(graph);
  Value* products = InputProducts(graph, gates());
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

void LstmBase::EmitBackward(GraphBuilder& graph) const {
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
    Value* dc_prev = t == 0 ? nullptr : graph.Scratch(StrCat("dc", t), Shape{sizes.items, width()});
    graph.Emit(ops::LstmUnitGrad{},
               {C(graph, t - 1), GateInputs(graph, t), Cont(graph, t), C(graph, t), dc, dh_total},
               {dc_prev, dgates[t]});
    dgates[t] = Clipped(graph, t, dgates[t]);
    if (t == 0) break;
    Value* dhidden = TimesGrad(graph, StrCat("dhidden", t), dgates[t],
                               graph.param(recurrent_weights()), sizes.items, gates(), width());
    dh = ScaleItems(graph, StrCat("dh", t), dhidden, Cont(graph, t));
    dc = dc_prev;
  }
  Value* all_dgates = Join(graph, "dgates", dgates, gates());
  WeightsGrad(graph, all_dgates, Join(graph, "hidden", hidden, width()),
              graph.param_diff(recurrent_weights()), rows, gates(), width());
  InputProductsGrad(graph, gates(), all_dgates);
}

Value* LstmBase::State(GraphBuilder& graph, const char* name, int state, int64_t t) const {
  if (t < 0) return InitialState(graph, state);
  return graph.Saved(StrCat(name, t), Shape{SizesOf(graph).items, width()});
}

Value* LstmBase::GateInputs(GraphBuilder& graph, int64_t t) const {
  return graph.Saved(StrCat("gates", t), Shape{SizesOf(graph).items, gates()});
}

Value* LstmBase::Hidden(GraphBuilder& graph, int64_t t) const {
  return graph.Saved(StrCat("hidden", t), Shape{SizesOf(graph).items, width()});
}

Value* LstmBase::Clipped(GraphBuilder& graph, int64_t t, Value* dgates) const {
  const float most = clipping_threshold();
  if (most == 0) return dgates;
  Value* clipped = graph.Scratch(StrCat("clipped", t), graph.shape(dgates));
  graph.Emit(ops::Clip(-most, most), {dgates}, {clipped});
  return clipped;
}

}  // namespace caffe
