// Data gradient of a convolution that follows batch normalization and a ReLU. The sums for the
// normalization's gradient are accumulated while the data gradient is still in registers.
#pragma once

#include <string>

#include "caffe/ops/conv.hpp"

namespace caffe::ops {

// (dy, w, x, mean, variance, gamma, beta) -> (dz, sum, dot):  dz is the result of `conv`, without
// its epilogue, for dy and w, times 0 where BatchNorm(x) is not above 0. For each channel, sum is
// the sum of dz, and dot is the sum of dz * (x - mean) / sqrt(variance + eps).
struct ConvGradNorm {
  static constexpr std::string_view kName = "ConvGradNorm";
  static constexpr NumericRule kNumericRule = NumericRule::kMath;
  enum Input { kDy, kW, kX, kMean, kVariance, kGamma, kBeta };
  enum Output { kDz, kSum, kDot };
  ConvGradData conv;
  double eps = 1e-5;

  std::string Attributes() const { return StrCat(conv.Attributes(), ", eps ", eps); }
  LayoutRule layout_rule() const {
    return {.inputs = {kDy, kX}, .outputs = {kDz}, .prefers_channels_last = true};
  }
  double Flops(std::span<const TensorDesc> inputs, std::span<const TensorDesc> outputs) const {
    return conv.Flops(inputs, outputs);
  }
};

// (x, mean, variance, dz, gamma, sum, dot) -> (dx[, dgamma, dbeta]):  the gradient of batch
// normalization, from the sums that ConvGradNorm computes.
struct BatchNormGradOfSums {
  static constexpr std::string_view kName = "BatchNormGradOfSums";
  static constexpr bool kInPlace = true;
  enum Input { kX, kMean, kVariance, kDz, kGamma, kSum, kDot };
  enum Output { kDx, kDgamma, kDbeta };
  double eps = 1e-5;
  std::string Attributes() const { return StrCat("eps ", eps); }
  LayoutRule layout_rule() const {
    return {.inputs = {kX, kDz}, .outputs = {kDx}, .prefers_channels_last = true};
  }
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc> outputs) const {
    return 4.0 * static_cast<double>(outputs[0].count());
  }
};

}  // namespace caffe::ops
