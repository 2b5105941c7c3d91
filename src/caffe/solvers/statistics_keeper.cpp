#include "caffe/solvers/statistics_keeper.hpp"

#include <set>

#include "caffe/graph/graph.hpp"
#include "caffe/ops/update.hpp"
#include "caffe/solvers/find_kernel.hpp"

namespace caffe {

std::vector<SyncedTensor*> RunningStatistics(const TrainingNet& net) {
  std::vector<SyncedTensor*> statistics;
  std::set<SyncedTensor*> seen;
  for (const Node* node : net.graph().ScheduledNodes()) {
    if (node->direction != Direction::kForward) continue;
    for (Value* value : node->outputs) {
      if (value == nullptr || value->root()->kind != ValueKind::kParam) continue;
      SyncedTensor* tensor = net.tensor(*value->root());
      if (seen.insert(tensor).second) statistics.push_back(tensor);
    }
  }
  return statistics;
}

StatisticsKeeper::StatisticsKeeper(const TrainingNet& net)
    : blocks_(net.device(), net.graph(), RunningStatistics(net)), kept_(blocks_.places()) {
  if (kept_.empty()) return;
  std::vector<OperandDesc> operands;
  for (const TensorView& place : kept_) operands.push_back(Present(place));
  const std::vector<OperandDesc> copies = operands;
  operands.push_back(Present({Shape{ops::kFirstRate}, DType::kDouble}));
  restore_ = FindKernel(ops::CopyAll{}, operands, copies, net.graph());
  kept_.emplace_back();
}

void StatisticsKeeper::RestoreIfSkipped(const TensorView& decision, Stream& stream) {
  if (kept_.empty()) return;
  kept_.back() = decision;
  KernelContext context;
  context.inputs = kept_;
  context.outputs = blocks_.bound();
  context.stream = &stream;
  restore_.run(context);
}

}  // namespace caffe
