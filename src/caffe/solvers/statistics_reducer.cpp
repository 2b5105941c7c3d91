#include "caffe/solvers/statistics_reducer.hpp"

#include <map>
#include <utility>

namespace caffe {

StatisticsReducer::StatisticsReducer(std::shared_ptr<Communicator> communicator,
                                     std::shared_ptr<Device> device,
                                     const std::vector<SyncedTensor*>& statistics)
    : communicator_(std::move(communicator)),
      device_(std::move(device)),
      filled_(device_->MakeEvent()) {
  std::map<DType, std::vector<SyncedTensor*>> by_type;
  for (SyncedTensor* tensor : statistics) by_type[tensor->desc().dtype].push_back(tensor);
  for (auto& [dtype, tensors] : by_type) {
    Block& block = blocks_.emplace_back();
    int64_t count = 0;
    for (const SyncedTensor* tensor : tensors) count += tensor->desc().count();
    block.owner = device_->Allocate(static_cast<size_t>(count) * SizeOf(dtype));
    block.memory = {{Shape{count}, dtype}, block.owner.get()};
    block.tensors = std::move(tensors);
  }
}

// fn(tensor, its place in the block).
template <typename Fn>
void StatisticsReducer::ForParts(const Block& block, const Fn& fn) {
  char* place = static_cast<char*>(block.owner.get());
  for (SyncedTensor* tensor : block.tensors) {
    fn(*tensor, place);
    place += tensor->desc().bytes();
  }
}

void StatisticsReducer::Reduce() {
  Stream& stream = device_->compute_stream();
  for (const Block& block : blocks_) {
    ForParts(block, [&](SyncedTensor& tensor, char* place) {
      stream.Copy(place, tensor.data(), tensor.desc().bytes());
    });
    stream.Record(*filled_);
    communicator_->AllReduceMean(block.memory, block.memory.dtype, *filled_);
    ForParts(block, [&](SyncedTensor& tensor, const char* place) {
      stream.Copy(tensor.data(), place, tensor.desc().bytes());
      tensor.MarkWritten();
    });
  }
}

}  // namespace caffe
