// Statistics of a convolution's result, and the running ones after them: what ConvStatistics makes
// behind the convolution.
#pragma once

#include <functional>

#include "caffe/ops/conv_statistics.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cuda {

// In one pass over the result.
class ChannelStatistics {
 public:
  ChannelStatistics(const ops::ConvStatistics& op, const TensorDesc& y, Device& device);
  size_t workspace_bytes() const { return workspace_bytes_; }
  // Of the output kY, into the others.
  void Run(const KernelContext& ctx, void* workspace) const { run_(ctx, workspace); }

 private:
  std::function<void(const KernelContext&, void* workspace)> run_;
  size_t workspace_bytes_ = 0;
};

// From each channel's sum and sum of squares, float numbers that an engine has left. The variance
// is their difference, so where it is below 1e-4 of the mean's square, the channel is read again.
void StatisticsOfSums(const ops::ConvStatistics& op, const KernelContext& ctx, const float* sums,
                      const float* squares);

}  // namespace caffe::cuda
