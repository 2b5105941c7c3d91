// StatisticsBlocks: tensors such as running statistics as few blocks of memory.
#pragma once

#include <memory>
#include <vector>

#include "caffe/graph/graph.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {

// ResNet-50 has 159 tensors of a few hundred numbers, which travel as one. Copies are launched on
// the device's compute stream, one launch for all.
class StatisticsBlocks {
 public:
  // Of a net with that plan. The tensors outlive this.
  StatisticsBlocks(std::shared_ptr<Device> device, const Graph& graph,
                   const std::vector<SyncedTensor*>& tensors);

  // One for each type of element.
  const std::vector<TensorView>& blocks() const { return blocks_; }
  // What the tensors hold is in the blocks.
  void Gather();
  // The tensors hold what is in the blocks.
  void Scatter();

  // For launches of one's own: where the tensors lie in the blocks, and, after Bind(), in their own
  // memory, in one order. What writes them is followed by MarkWritten().
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
  std::vector<TensorView> bound_, places_;  // of tensors_, and of these in the blocks
  Kernel gather_, scatter_;                 // each keeps its addresses on the device
};

}  // namespace caffe
