// Statistics of a convolution's result and the running statistics: the second part of
// ConvStatistics.
#pragma once

#include <functional>

#include "caffe/ops/conv_statistics.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cuda {

// Computes the statistics in one pass over the result.
class ChannelStatistics {
 public:
  ChannelStatistics(const ops::ConvStatistics& op, const TensorDesc& y, Device& device);
  size_t workspace_bytes() const { return workspace_bytes_; }
  // Reads the output kY, writes the other outputs.
  void Run(const KernelContext& ctx, void* workspace) const { run_(ctx, workspace); }

 private:
  std::function<void(const KernelContext&, void* workspace)> run_;
  size_t workspace_bytes_ = 0;
};

// Computes statistics from each channel's sum and sum of squares, as floats from an engine. The
// variance is their difference, so if it is below 1e-4 of the mean's square, the channel is read
// again.
void StatisticsOfSums(const ops::ConvStatistics& op, const KernelContext& ctx, const float* sums,
                      const float* squares);

}  // namespace caffe::cuda
