// A convolution in front of a batch normalisation, whose statistics are summed while the result is
// still in registers.
#pragma once

#include <string>

#include "caffe/ops/conv.hpp"

namespace caffe::ops {

// (x, w) -> (y, mean, variance):  y as Conv makes it, without bias and epilogue; of each channel of
// y its mean and its biased variance, as BatchNorm makes them.
struct ConvStatistics {
  static constexpr std::string_view kName = "ConvStatistics";
  static constexpr NumericRule kNumericRule = NumericRule::kMath;
  enum Input { kX, kW };
  enum Output { kY, kMean, kVariance };
  Conv conv;

  std::string Attributes() const { return conv.Attributes(); }
  LayoutRule layout_rule() const {
    return {.inputs = {kX}, .outputs = {kY}, .prefers_channels_last = true};
  }
  double Flops(std::span<const TensorDesc> inputs, std::span<const TensorDesc> outputs) const {
    return conv.Flops(inputs, outputs);
  }
};

}  // namespace caffe::ops
