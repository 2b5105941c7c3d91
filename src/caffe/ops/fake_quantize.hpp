// Rounds values to what 8-bit numbers can represent but keeps their type, for quantization-aware
// training.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "caffe/ops/pointwise.hpp"

namespace caffe::ops {

// Range of 8-bit numbers: value = scale * number, lowest <= number <= highest; -128 to 127, or 0 to
// 255.
struct QuantizedRange {
  float scale = 1;
  float lowest = -128, highest = 127;

  // The nearest number (ties to even), before it is clipped.
  template <typename A>
  CAFFE_HOST_DEVICE inline A NumberOf(A x) const {
    return std::nearbyint(x * (A(1) / A(scale)));
  }
  std::string Attributes() const { return StrCat("scale ", scale, ", ", lowest, " to ", highest); }
};

// (x) -> (y):  y = scale * clipped number of x; NaN stays NaN.
struct FakeQuantize : UnaryPointwise, QuantizedRange {
  static constexpr std::string_view kName = "FakeQuantize";

  explicit FakeQuantize(const QuantizedRange& range) : QuantizedRange(range) {}
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x) const {
    const A number = NumberOf(x);
    if (number < A(lowest)) return A(scale) * A(lowest);
    return A(scale) * (number > A(highest) ? A(highest) : number);
  }
};

// (x, dy) -> (dx):  dx = dy where the number of x is within the range, else 0: the straight-through
// estimate (Bengio et al. 2013, arXiv 1308.3432).
struct FakeQuantizeGrad : BinaryPointwise, QuantizedRange {
  static constexpr std::string_view kName = "FakeQuantizeGrad";

  explicit FakeQuantizeGrad(const QuantizedRange& range) : QuantizedRange(range) {}
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x, A dy) const {
    const A number = NumberOf(x);
    return number < A(lowest) || number > A(highest) ? A(0) : dy;
  }
};

// Lower bound of the scale of weights.
inline constexpr float kLeastWeightScale = 1e-30F;

// (w) -> (y):  each row of w rounded to multiples of its largest magnitude / 127. A row holds the
// weights of an output channel, `step` elements apart: rows are consecutive if step is 1, else
// (step = rows) side by side. Nothing is clipped, so the straight-through gradient of w is that of
// y.
struct FakeQuantizeRows {
  static constexpr std::string_view kName = "FakeQuantizeRows";
  static constexpr NumericRule kNumericRule = NumericRule::kFloat;
  int64_t rows = 1, step = 1;
  std::string Attributes() const { return StrCat(rows, step == 1 ? " rows" : " columns"); }
};

}  // namespace caffe::ops
