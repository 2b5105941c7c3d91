// BoundOp: one op outside a graph, with its kernel and tensors. For update rules.
#pragma once

#include <memory>
#include <vector>

#include "caffe/device/device.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {

class BoundOp {
 public:
  // Picks the best kernel of `device`; throws Unsupported naming `where` and each refusal when it
  // has none. The tensors are borrowed and have to outlive this.
  BoundOp(const std::string& where, std::shared_ptr<Device> device, Op op,
          std::vector<SyncedTensor*> inputs, std::vector<SyncedTensor*> outputs);

  // Overwrites the outputs, or adds to them.
  void Run(bool accumulate = false);

 private:
  std::shared_ptr<Device> device_;
  std::vector<SyncedTensor*> inputs_, outputs_;
  Kernel kernel_;
  std::shared_ptr<void> workspace_;
  std::vector<TensorView> input_views_, output_views_;
};

}  // namespace caffe
