// Parameter updates of the solvers.
#pragma once

#include <string>

#include "caffe/ops/op.hpp"

namespace caffe::ops {

enum class Regularization { kNone, kL1, kL2 };

// One step of stochastic gradient descent with momentum, every pass over memory in one:
// (g, scalars) -> (w, h), w and h updated in place.
//   g' = gradient_scale * g + decay * w  (L2; L1: decay * sign(w))
//   h  = momentum * h + rate * lr_mult * g';  w = w - h
// scalars, in double: [rate, momentum, weight_decay, gradient_scale].
struct SgdUpdate {
  static constexpr std::string_view kName = "SgdUpdate";
  static constexpr NumericRule kNumericRule = NumericRule::kFloat;
  Regularization regularization = Regularization::kL2;
  double lr_mult = 1, decay_mult = 1;
  std::string Attributes() const {
    return StrCat("lr_mult ", lr_mult, ", decay_mult ", decay_mult);
  }
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc> outputs) const {
    return 6.0 * static_cast<double>(outputs[0].count());
  }
};

// (x) -> (sum):  sum of squares in double, added to where the step accumulates.
struct SumOfSquares {
  static constexpr std::string_view kName = "SumOfSquares";
  static constexpr NumericRule kNumericRule = NumericRule::kFloat;
};

// (x) -> (max):  largest absolute value in double, NaN when x holds one; where the step accumulates,
// the larger of it and what is there.
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
