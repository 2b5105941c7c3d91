// Gradient of batch normalization followed by a ReLU; does not read the ReLU's output.
#pragma once

#include <string>

#include "caffe/ops/op.hpp"

namespace caffe::ops {

// (x, mean, variance, dy, gamma, beta) -> (dx[, dgamma, dbeta]):  the gradient of
// y = ReLU(BatchNorm(x)). dy counts where y, recomputed from x and rounded to its type, is above 0.
// gamma and beta may be absent.
struct BatchNormReluGrad {
  static constexpr std::string_view kName = "BatchNormReluGrad";
  static constexpr bool kInPlace = true;
  enum Input { kX, kMean, kVariance, kDy, kGamma, kBeta };
  enum Output { kDx, kDgamma, kDbeta };
  double eps = 1e-5;
  std::string Attributes() const { return StrCat("eps ", eps); }
  LayoutRule layout_rule() const {
    return {.inputs = {kX, kDy}, .outputs = {kDx}, .prefers_channels_last = true};
  }
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc> outputs) const {
    return 12.0 * static_cast<double>(outputs[0].count());
  }
};

}  // namespace caffe::ops
