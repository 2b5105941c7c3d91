// StatisticsReducer: makes running statistics those of all ranks.
#pragma once

#include <memory>
#include <vector>

#include "caffe/distributed/communicator.hpp"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {

// ResNet-50 has 159 tensors of a few hundred numbers: all of one type travel as one.
class StatisticsReducer {
 public:
  // The tensors outlive this.
  StatisticsReducer(std::shared_ptr<Communicator> communicator, std::shared_ptr<Device> device,
                    const std::vector<SyncedTensor*>& statistics);

  // Each becomes the mean over the ranks, which all call it.
  void Reduce();

 private:
  struct Block {
    TensorView memory;
    std::shared_ptr<void> owner;
    std::vector<SyncedTensor*> tensors;
  };
  template <typename Fn>
  static void ForParts(const Block& block, const Fn& fn);

  const std::shared_ptr<Communicator> communicator_;
  const std::shared_ptr<Device> device_;
  std::vector<Block> blocks_;
  std::unique_ptr<Event> filled_;
};

}  // namespace caffe
