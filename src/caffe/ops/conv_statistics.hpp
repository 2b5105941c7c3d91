// A convolution followed by batch normalization; the statistics are summed while the result is
// still in registers.
#pragma once

#include <optional>
#include <string>

#include "caffe/ops/conv.hpp"
#include "caffe/ops/norm.hpp"

namespace caffe::ops {

// (x, w) -> (y, mean, variance[, running mean, running variance, running factor]):  y as in Conv,
// without bias and epilogue; mean and biased variance of each channel of y; and the running
// statistics that `running` updates with them, as in BatchNorm.
struct ConvStatistics {
  static constexpr std::string_view kName = "ConvStatistics";
  static constexpr NumericRule kNumericRule = NumericRule::kMath;
  enum Input { kX, kW };
  enum Output { kY, kMean, kVariance, kRunning };
  static constexpr OperandSet kUpdates = {kRunning, kRunning + 1, kRunning + 2};
  Conv conv;
  std::optional<UpdateRunningStatistics> running = std::nullopt;

  std::string Attributes() const {
    return StrCat(conv.Attributes(), running ? ", " + running->Attributes() : "");
  }
  LayoutRule layout_rule() const {
    return {.inputs = {kX}, .outputs = {kY}, .prefers_channels_last = true};
  }
  double Flops(std::span<const TensorDesc> inputs, std::span<const TensorDesc> outputs) const {
    return conv.Flops(inputs, outputs);
  }
};

}  // namespace caffe::ops
