// StatisticsBlocks: packs small tensors such as running statistics into few blocks of memory.
#pragma once

#include <memory>
#include <vector>

#include "caffe/graph/graph.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {

// ResNet-50 has 159 tensors of a few hundred numbers, which are sent as one block. Copies run on
// the device's compute stream, one launch for all tensors.
class StatisticsBlocks {
 public:
  // The tensors must belong to a net with that plan, and outlive this object.
  StatisticsBlocks(std::shared_ptr<Device> device, const Graph& graph,
                   const std::vector<SyncedTensor*>& tensors);

  // One block per element type.
  const std::vector<TensorView>& blocks() const { return blocks_; }
  // Copies the tensors to the blocks.
  void Gather();
  // Copies the blocks to the tensors.
  void Scatter();

  // For custom launches: the tensors' positions in the blocks and, after Bind(), in their own
  // memory, in the same order. After writing the tensors, call MarkWritten().
  const std::vector<TensorView>& places() const { return places_; }
  const std::vector<TensorView>& bound() const { return bound_; }
  void Bind();
  void MarkWritten();

 private:
  void Copy(const Kernel& copy, const std::vector<TensorView>& from,
            const std::vector<TensorView>& to) const;

  const std::shared_ptr<Device> device_;
  std::vector<SyncedTensor*> tensors_;
  std::vector<std::shared_ptr<void>> owners_;
  std::vector<TensorView> blocks_;
  std::vector<TensorView> bound_, places_;  // of tensors_: own memory, and place in the blocks
  Kernel gather_, scatter_;                 // each keeps its addresses on the device
};

}  // namespace caffe
