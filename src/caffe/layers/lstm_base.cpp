#include "caffe/layers/lstm_base.hpp"

namespace caffe {

void LstmBase::EmitPart(GraphBuilder& graph, const Part& part, Value* y) const {
  const bool saves = graph.with_backward();
  std::vector<Value*> inputs = {InputProducts(graph, part), Weights(graph, part), Cont(graph),
                                part.initial[kH], part.initial[kC]};
  std::vector<Value*> outputs = {y, saves ? GateInputs(graph, part) : nullptr,
                                 saves ? Cells(graph, part) : nullptr, part.last[kH],
                                 part.last[kC]};
  if (projects()) {
    inputs.push_back(Projection(graph, part));
    outputs.push_back(saves ? Units(graph, part) : nullptr);
  }
  graph.Emit(ops::LstmSteps{RecurrenceOf(graph, part)}, inputs, outputs);
}

Value* LstmBase::EmitPartGrad(GraphBuilder& graph, const Part& part, Value* y, Value* dy) const {
  const int weights = recurrent_weights(part);
  Value* dgates = Rows(graph, part.Named("dgates"), gates());
  Value* hidden = Rows(graph, part.Named("hidden"), output_width());
  std::vector<Value*> inputs = {Weights(graph, part), Cont(graph), part.initial[kH],
                                part.initial[kC],     y,           GateInputs(graph, part),
                                Cells(graph, part),   dy,          part.dlast[kH],
                                part.dlast[kC]};
  std::vector<Value*> outputs = {dgates, hidden, part.dinitial[kH], part.dinitial[kC]};
  if (projects()) {
    inputs.push_back(Projection(graph, part));
    outputs.push_back(Rows(graph, part.Named("dprojected"), output_width()));
  }
  graph.Emit(ops::LstmStepsGrad{RecurrenceOf(graph, part), clipping_threshold()}, inputs, outputs);
  WeightsGrad(graph, part, weights, dgates, hidden, gates(), output_width());
  if (projects()) {
    WeightsGrad(graph, part, weights + 1, outputs.back(), Units(graph, part), output_width(),
                width());
  }
  return dgates;
}

Value* LstmBase::Weights(GraphBuilder& graph, const Part& part) const {
  return PartParam(graph, part, recurrent_weights(part));
}

Value* LstmBase::Projection(GraphBuilder& graph, const Part& part) const {
  return PartParam(graph, part, recurrent_weights(part) + 1);
}

Value* LstmBase::GateInputs(GraphBuilder& graph, const Part& part) const {
  return SavedRows(graph, part.Named("gates"), gates());
}

Value* LstmBase::Cells(GraphBuilder& graph, const Part& part) const {
  return SavedRows(graph, part.Named("c"), width());
}

Value* LstmBase::Units(GraphBuilder& graph, const Part& part) const {
  return SavedRows(graph, part.Named("units"), width(), SavedAs::kData);
}

}  // namespace caffe
