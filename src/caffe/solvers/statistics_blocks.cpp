#include "caffe/solvers/statistics_blocks.hpp"

#include <map>
#include <utility>

#include "caffe/distributed/gradient_buckets.hpp"
#include "caffe/ops/update.hpp"
#include "caffe/solvers/find_kernel.hpp"

namespace caffe {

StatisticsBlocks::StatisticsBlocks(std::shared_ptr<Device> device, const Graph& graph,
                                   const std::vector<SyncedTensor*>& tensors)
    : device_(std::move(device)) {
  std::map<DType, std::vector<SyncedTensor*>> by_type;
  for (SyncedTensor* tensor : tensors) by_type[tensor->desc().dtype].push_back(tensor);
  std::vector<OperandDesc> operands;
  for (const auto& [dtype, of_type] : by_type) {
    size_t bytes = 0;
    for (const SyncedTensor* tensor : of_type) bytes += PaddedBytes(tensor->desc().bytes());
    owners_.push_back(device_->Allocate(bytes));
    char* place = static_cast<char*>(owners_.back().get());
    blocks_.push_back({{Shape{static_cast<int64_t>(bytes / SizeOf(dtype))}, dtype}, place});
    for (SyncedTensor* tensor : of_type) {
      tensors_.push_back(tensor);
      bound_.push_back({tensor->desc(), nullptr});
      places_.push_back({tensor->desc(), place});
      operands.push_back(Present(tensor->desc()));
      place += PaddedBytes(tensor->desc().bytes());
    }
  }
  if (operands.empty()) return;
  gather_ = FindKernel(ops::CopyAll{}, operands, operands, graph);
  scatter_ = FindKernel(ops::CopyAll{}, operands, operands, graph);
}

void StatisticsBlocks::Gather() {
  if (tensors_.empty()) return;
  Bind();
  Copy(gather_, bound_, places_);
}

void StatisticsBlocks::Scatter() {
  if (tensors_.empty()) return;
  Bind();
  Copy(scatter_, places_, bound_);
  MarkWritten();
}

void StatisticsBlocks::MarkWritten() {
  for (SyncedTensor* tensor : tensors_) tensor->MarkWritten();
}

void StatisticsBlocks::Bind() {
  device_->MakeCurrent();
  for (size_t i = 0; i < tensors_.size(); ++i) bound_[i].data = tensors_[i]->data();
}

void StatisticsBlocks::Copy(const Kernel& copy, const std::vector<TensorView>& from,
                            const std::vector<TensorView>& to) const {
  KernelContext context;
  context.inputs = from;
  context.outputs = to;
  context.stream = &device_->compute_stream();
  copy.run(context);
}

}  // namespace caffe
