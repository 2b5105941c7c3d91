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
    : device_(net.device()), tensors_(RunningStatistics(net)) {
  if (tensors_.empty()) return;
  std::vector<OperandDesc> operands;
  for (const SyncedTensor* tensor : tensors_) {
    memory_.push_back(device_->Allocate(tensor->desc().bytes()));
    kept_.push_back({tensor->desc(), memory_.back().get()});
    statistics_.push_back({tensor->desc(), nullptr});
    operands.push_back(Present(tensor->desc()));
  }
  save_ = FindKernel(ops::CopyAll{}, operands, operands, net.graph());
  const std::vector<OperandDesc> copies = operands;
  operands.push_back(Present({Shape{ops::kFirstRate}, DType::kDouble}));
  restore_ = FindKernel(ops::CopyAll{}, operands, copies, net.graph());
  kept_.emplace_back();
}

void StatisticsKeeper::Bind() {
  device_->MakeCurrent();
  for (size_t i = 0; i < tensors_.size(); ++i) statistics_[i].data = tensors_[i]->data();
}

void StatisticsKeeper::Save() {
  if (tensors_.empty()) return;
  Bind();
  Copy(statistics_, std::span(kept_).first(tensors_.size()));
}

void StatisticsKeeper::Restore() {
  if (tensors_.empty()) return;
  Bind();
  Copy(std::span(kept_).first(tensors_.size()), statistics_);
  MarkWritten();
}

void StatisticsKeeper::Copy(std::span<TensorView> from, std::span<TensorView> to) const {
  KernelContext context;
  context.inputs = from;
  context.outputs = to;
  context.stream = &device_->compute_stream();
  save_.run(context);
}

void StatisticsKeeper::RestoreIfSkipped(const TensorView& decision, Stream& stream) {
  if (tensors_.empty()) return;
  kept_.back() = decision;
  KernelContext context;
  context.inputs = kept_;
  context.outputs = statistics_;
  context.stream = &stream;
  restore_.run(context);
}

void StatisticsKeeper::MarkWritten() {
  for (SyncedTensor* tensor : tensors_) tensor->MarkWritten();
}

}  // namespace caffe
