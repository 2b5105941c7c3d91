// Mean and biased variance of a tensor's channels.
#pragma once

#include <functional>

#include "caffe/ops/kernel.hpp"

namespace caffe::cuda {

// In one pass over the tensor.
class ChannelStatistics {
 public:
  ChannelStatistics(const TensorDesc& x, Device& device);
  size_t workspace_bytes() const { return workspace_bytes_; }
  // Of output 0, into the outputs `mean` and `variance`.
  void Run(const KernelContext& ctx, void* workspace, int mean, int variance) const;

 private:
  std::function<void(const KernelContext&, void* workspace, int mean, int variance)> run_;
  size_t workspace_bytes_ = 0;
};

// From each channel's sum and sum of squares, float numbers that an engine has left; `count` is
// that of a channel's elements. Nearly equal numbers are subtracted: in float that costs fewer bits
// than the rounding of the elements to float16 has.
void StatisticsOfSums(const KernelContext& ctx, const float* sums, const float* squares,
                      int64_t channels, int64_t count, int mean, int variance);

}  // namespace caffe::cuda
