// Positions in operands that are broadcast as in NumPy.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "caffe/host_device.hpp"

namespace caffe::ops {

// The axes of a result, outermost first, and for each operand the distance in elements between
// neighbours along them: 0 where the operand is repeated. Neighbouring axes that all operands pass
// by the same steps are one axis.
struct BroadcastSteps {
  static constexpr int kMostAxes = 8;
  static constexpr int kMostOperands = 3;

  int32_t axes = 0;
  std::array<int64_t, kMostAxes> extents = {};
  std::array<std::array<int64_t, kMostAxes>, kMostOperands> steps = {};

  // Elements of the last axis, which is contiguous in the result.
  int64_t width() const { return axes == 0 ? 1 : extents[axes - 1]; }
  // Step of an operand along the last axis: 0 or 1.
  int64_t last_step(int operand) const { return axes == 0 ? 0 : steps[operand][axes - 1]; }
  // True if no operand of the first `operands` is repeated: they may have any one layout.
  bool RepeatsNone(int operands) const {
    return axes == 0 || (axes == 1 && std::all_of(steps.begin(), steps.begin() + operands,
                                                  [](const auto& of) { return of[0] == 1; }));
  }
  // The position in an operand of element i of the result, which has fewer than 2^31 elements.
  CAFFE_HOST_DEVICE inline int64_t At(int operand, int64_t i) const {
    auto rest = static_cast<uint32_t>(i);
    int64_t at = 0;
    for (int axis = axes - 1; axis > 0; --axis) {
      const auto extent = static_cast<uint32_t>(extents[axis]);
      at += (rest % extent) * steps[operand][axis];
      rest /= extent;
    }
    return axes == 0 ? 0 : at + rest * steps[operand][0];
  }
};

}  // namespace caffe::ops
