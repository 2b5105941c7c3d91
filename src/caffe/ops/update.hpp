// What solvers ask of gradients before an update: one number each.
#pragma once

#include "caffe/ops/op.hpp"

namespace caffe::ops {

// (x) -> (sum):  sum of squares in double, added to where the step accumulates.
struct SumOfSquares {
  static constexpr std::string_view kName = "SumOfSquares";
  static constexpr NumericRule kNumericRule = NumericRule::kFloat;
};

// (x) -> (max):  largest absolute value in double, NaN when x holds one; where the step
// accumulates, the larger of it and what is there.
struct MaxAbs {
  static constexpr std::string_view kName = "MaxAbs";
  static constexpr NumericRule kNumericRule = NumericRule::kFloat;
};

// (x, y) -> (sum):  the sum of x * y in double, added to where the step accumulates.
struct Dot {
  static constexpr std::string_view kName = "Dot";
  static constexpr NumericRule kNumericRule = NumericRule::kFloat;
};

}  // namespace caffe::ops
