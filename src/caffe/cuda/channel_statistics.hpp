// Statistics of a convolution's result and the running statistics, from sums that an engine has
// computed with the result.
#pragma once

#include <optional>

#include "caffe/ops/conv.hpp"
#include "caffe/ops/fused.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/ops/norm.hpp"

namespace caffe::cuda {

// The region Conv(x, w) -> y, ChannelStatistics(y) -> mean, variance
// [, UpdateRunningStatistics(mean, variance) -> running].
struct ConvStatistics {
  enum Input { kX, kW };
  enum Output { kY, kMean, kVariance, kRunning };
  ops::Conv conv;
  std::optional<ops::UpdateRunningStatistics> running;

  explicit ConvStatistics(const ops::Fused& region);
  static bool IsFor(const Op& op);
  // Why no engine computes it; empty if one may.
  static std::string WhyNot(const Op& op, std::span<const OperandDesc> inputs, const Device&);
};

// Computes statistics from each channel's sum and sum of squares, as floats. The variance is their
// difference, so if it is below 1e-4 of the mean's square, the channel is read again.
void StatisticsOfSums(const ConvStatistics& op, const KernelContext& ctx, const float* sums,
                      const float* squares);

}  // namespace caffe::cuda
