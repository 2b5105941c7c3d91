#include "caffe/solvers/statistics_keeper.hpp"

#include <set>

#include "caffe/graph/graph.hpp"

namespace caffe {

std::vector<SyncedTensor*> RunningStatistics(const Net& net) {
  std::vector<SyncedTensor*> statistics;
  std::set<SyncedTensor*> seen;
  for (const Node* node : net.graph().ScheduledNodes()) {
    if (node->direction != Direction::kForward) continue;
    for (Value* value : node->outputs) {
      if (value == nullptr || value->root()->kind != ValueKind::kParam) continue;
      SyncedTensor* tensor = value->root()->tensor;
      if (seen.insert(tensor).second) statistics.push_back(tensor);
    }
  }
  return statistics;
}

StatisticsKeeper::StatisticsKeeper(const Net& net) : device_(*net.graph().options.device) {
  for (SyncedTensor* tensor : RunningStatistics(net)) {
    kept_.push_back({tensor, std::vector<char>(tensor->desc().bytes())});
  }
}

void StatisticsKeeper::Save() {
  for (Kept& kept : kept_) {
    device_.CopyToHost(kept.bytes.data(), kept.tensor->data(), kept.bytes.size());
  }
}

void StatisticsKeeper::Restore() {
  for (Kept& kept : kept_) {
    device_.CopyFromHost(kept.tensor->data(), kept.bytes.data(), kept.bytes.size());
    kept.tensor->MarkWritten();
  }
}

}  // namespace caffe
