// Ops between a tensor and a smaller one that covers `num_axes` of its axes from `axis` on.
#pragma once

#include <algorithm>
#include <string>

#include "caffe/ops/op.hpp"

namespace caffe::ops {

struct BroadcastAxes {
  int axis = 1;      // first covered axis of x
  int num_axes = 1;  // 0: the smaller operand is a scalar

  std::string Attributes() const { return StrCat("axis ", axis, ", num_axes ", num_axes); }
  // One factor per channel works in any layout; other shapes are addressed in row-major order.
  bool is_per_channel() const { return axis == 1 && num_axes == 1; }
};

// A tensor in memory order as outer x covered x inner; the smaller operand has `covered` elements.
struct CoveredView {
  int64_t outer = 1, covered = 1, inner = 1;

  CoveredView(const TensorDesc& x, const BroadcastAxes& axes) {
    if (x.layout == Layout::kChannelsLast) {
      covered = x.shape[1];
      outer = x.count() / std::max<int64_t>(covered, 1);
      return;
    }
    outer = x.shape.count(0, axes.axis);
    covered = x.shape.count(axes.axis, axes.axis + axes.num_axes);
    inner = x.shape.count(axes.axis + axes.num_axes);
  }
};

// (x, s[, b]) -> (y):  y = x * s + b.
struct ScaleShift : BroadcastAxes {
  static constexpr std::string_view kName = "ScaleShift";
  static constexpr bool kInPlace = true;
  LayoutRule layout_rule() const { return is_per_channel() ? kFollowFirstInput : LayoutRule{}; }
  OperandSet item_inputs() const { return layout_rule().inputs; }
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc> outputs) const {
    return 2.0 * static_cast<double>(outputs[0].count());
  }
};

// (x, b) -> (y):  y = x + b.
struct AddBias : BroadcastAxes {
  static constexpr std::string_view kName = "AddBias";
  static constexpr bool kInPlace = true;
  LayoutRule layout_rule() const { return is_per_channel() ? kFollowFirstInput : LayoutRule{}; }
  OperandSet item_inputs() const { return layout_rule().inputs; }
};

// (x[, z]) -> (s):  the sum of x (of x * z) over all axes that s does not cover.
struct SumToAxes : BroadcastAxes {
  static constexpr std::string_view kName = "SumToAxes";
  LayoutRule layout_rule() const {
    return is_per_channel() ? LayoutRule{.inputs = {0, 1}} : LayoutRule{};
  }
  double Flops(std::span<const TensorDesc> inputs, std::span<const TensorDesc>) const {
    return static_cast<double>(inputs[0].count()) * static_cast<double>(inputs.size());
  }
};

}  // namespace caffe::ops
