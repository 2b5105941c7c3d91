#include "caffe/layers/lstm_base.hpp"

namespace caffe {

void LstmBase::EmitPart(GraphBuilder& graph, const Part& part, Value* y) const {
  Value *gate_inputs = nullptr, *cells = nullptr;
  if (graph.with_backward()) {
    gate_inputs = SavedRows(graph, part.Named("gates"), gates());
    cells = SavedRows(graph, part.Named("c"), width());
  }
  graph.Emit(ops::LstmSteps{RecurrenceOf(graph, part)},
             {InputProducts(graph, part), PartParam(graph, part, recurrent_weights(part)),
              Cont(graph), part.initial[kH], part.initial[kC]},
             {y, gate_inputs, cells, part.last[kH], part.last[kC]});
}

Value* LstmBase::EmitPartGrad(GraphBuilder& graph, const Part& part, Value* y, Value* dy) const {
  const int weights = recurrent_weights(part);
  Value* dgates = Rows(graph, part.Named("dgates"), gates());
  Value* hidden = Rows(graph, part.Named("hidden"), width());
  graph.Emit(ops::LstmStepsGrad{RecurrenceOf(graph, part), clipping_threshold()},
             {PartParam(graph, part, weights), Cont(graph), part.initial[kH], part.initial[kC], y,
              SavedRows(graph, part.Named("gates"), gates()),
              SavedRows(graph, part.Named("c"), width()), dy, part.dlast[kH], part.dlast[kC]},
             {dgates, hidden, part.dinitial[kH], part.dinitial[kC]});
  WeightsGrad(graph, part, weights, dgates, hidden, gates(), width());
  return dgates;
}

}  // namespace caffe
