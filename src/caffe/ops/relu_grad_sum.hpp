// Gradient of a ReLU that follows a layer with a bias, together with the bias gradient.
#pragma once

#include <string>

#include "caffe/ops/pointwise.hpp"

namespace caffe::ops {

// (s, dy) -> (dx, sum):  dx as in ReluGrad; sum is dx summed over every axis but axis 1.
struct ReluGradSum {
  static constexpr std::string_view kName = "ReluGradSum";
  static constexpr bool kInPlace = true;
  enum Output { kDx, kSum };
  float negative_slope = 0;

  std::string Attributes() const {
    return negative_slope == 0 ? "" : StrCat("negative_slope ", negative_slope);
  }
  LayoutRule layout_rule() const { return kFollowBothInputs; }
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc> outputs) const {
    return 2.0 * static_cast<double>(outputs[0].count());
  }
  ReluGrad gradient() const { return ReluGrad(negative_slope); }
};

}  // namespace caffe::ops
