// Leaky ReLU with a learned slope per channel (He et al. 2015, "Delving deep into rectifiers").
#pragma once

#include "caffe/ops/broadcast.hpp"

namespace caffe::ops {

// (x, slope) -> (y):  y = x for x > 0, slope * x otherwise; slope covers `axes` of x.
struct PRelu : BroadcastAxes {
  static constexpr std::string_view kName = "PRelu";
  LayoutRule layout_rule() const { return is_per_channel() ? kFollowFirstInput : LayoutRule{}; }
  OperandSet item_inputs() const { return layout_rule().inputs; }
};

// (x, slope, dy) -> (dx)
struct PReluGrad : BroadcastAxes {
  static constexpr std::string_view kName = "PReluGrad";
  LayoutRule layout_rule() const {
    return is_per_channel() ? LayoutRule{.inputs = {0, 2}, .outputs = {0}} : LayoutRule{};
  }
};

// (x, dy) -> (dslope):  the sum of dy * x over x <= 0, over all axes that slope does not cover.
struct PReluGradSlope : BroadcastAxes {
  static constexpr std::string_view kName = "PReluGradSlope";
  LayoutRule layout_rule() const {
    return is_per_channel() ? LayoutRule{.inputs = {0, 1}} : LayoutRule{};
  }
};

}  // namespace caffe::ops
