// A copy of a tensor in a type with fewer bits, in the memory of the same device.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "caffe/device/device.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe::nccl {

// One tensor at a time.
class RoundedCopy {
 public:
  // Allocates memory for tensors of this size and type, and loads the kernels for them.
  void Reserve(const TensorView& tensor, DType type, Device& device);
  // The elements rounded to `type`, in memory of this object, as the stream comes to it. Reserve()
  // has been called for such a tensor.
  TensorView CopyOf(const TensorView& tensor, DType type, Stream& stream) const;
  void CopyBack(const TensorView& rounded, const TensorView& tensor, Stream& stream) const;

 private:
  void Convert(const TensorView& from, const TensorView& to, Stream& stream) const;

  std::map<std::pair<DType, DType>, Kernel> kernels_;  // by the types from and to
  std::shared_ptr<void> memory_;
  size_t bytes_ = 0;
};

}  // namespace caffe::nccl
