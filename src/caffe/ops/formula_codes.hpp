// Instructions of formulas: the arithmetic is written once and shared by every device.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "caffe/ops/activations.hpp"

// FUNCTION(name, number of operands)
#define CAFFE_FORMULA_CODES(FUNCTION) \
  FUNCTION(Add, 2)                    \
  FUNCTION(Subtract, 2)               \
  FUNCTION(Multiply, 2)               \
  FUNCTION(Divide, 2)                 \
  FUNCTION(Pow, 2)                    \
  FUNCTION(Min, 2)                    \
  FUNCTION(Max, 2)                    \
  FUNCTION(Less, 2)                   \
  FUNCTION(LessEqual, 2)              \
  FUNCTION(Equal, 2)                  \
  FUNCTION(Negative, 1)               \
  FUNCTION(Abs, 1)                    \
  FUNCTION(Sign, 1)                   \
  FUNCTION(Floor, 1)                  \
  FUNCTION(Round, 1)                  \
  FUNCTION(Square, 1)                 \
  FUNCTION(Sqrt, 1)                   \
  FUNCTION(Rsqrt, 1)                  \
  FUNCTION(Exp, 1)                    \
  FUNCTION(Log, 1)                    \
  FUNCTION(Sin, 1)                    \
  FUNCTION(Cos, 1)                    \
  FUNCTION(Tanh, 1)                   \
  FUNCTION(Sigmoid, 1)                \
  FUNCTION(Relu, 1)                   \
  FUNCTION(Softplus, 1)               \
  FUNCTION(Erf, 1)                    \
  FUNCTION(Gelu, 1)                   \
  FUNCTION(Where, 3)                  \
  FUNCTION(Clip, 3)

namespace caffe::ops {

enum class FormulaCode : uint8_t {
#define CAFFE_FORMULA_ENUM(name, operands) k##name,
  CAFFE_FORMULA_CODES(CAFFE_FORMULA_ENUM)
#undef CAFFE_FORMULA_ENUM
      kCount
};

// Number of operands of an instruction.
constexpr int FormulaArity(FormulaCode code) {
  switch (code) {
#define CAFFE_FORMULA_ARITY(name, operands) \
  case FormulaCode::k##name:                \
    return operands;
    CAFFE_FORMULA_CODES(CAFFE_FORMULA_ARITY)
#undef CAFFE_FORMULA_ARITY
    case FormulaCode::kCount:
      break;
  }
  return 0;
}

// The larger and the smaller of two numbers; NaN if one is NaN, as in NumPy.
template <typename A>
CAFFE_HOST_DEVICE inline A LargerOrNan(A a, A b) {
  return a > b || a != a ? a : b;
}
template <typename A>
CAFFE_HOST_DEVICE inline A SmallerOrNan(A a, A b) {
  return a < b || a != a ? a : b;
}

// Comparisons give 1 or 0. Where takes b if a is not 0, else c. Clip limits a to [b, c]. Round
// rounds to the nearest whole number, halves to the even one.
template <FormulaCode kCode, typename A>
CAFFE_HOST_DEVICE inline A ApplyFormula([[maybe_unused]] A a, [[maybe_unused]] A b,
                                        [[maybe_unused]] A c) {
  using enum FormulaCode;
  if constexpr (kCode == kAdd) return a + b;
  if constexpr (kCode == kSubtract) return a - b;
  if constexpr (kCode == kMultiply) return a * b;
  if constexpr (kCode == kDivide) return a / b;
  if constexpr (kCode == kPow) return std::pow(a, b);
  if constexpr (kCode == kMin) return SmallerOrNan(a, b);
  if constexpr (kCode == kMax) return LargerOrNan(a, b);
  if constexpr (kCode == kLess) return a < b ? A(1) : A(0);
  if constexpr (kCode == kLessEqual) return a <= b ? A(1) : A(0);
  if constexpr (kCode == kEqual) return a == b ? A(1) : A(0);
  if constexpr (kCode == kNegative) return -a;
  if constexpr (kCode == kAbs) return std::abs(a);
  if constexpr (kCode == kSign) return a > A(0) ? A(1) : a < A(0) ? A(-1) : a;
  if constexpr (kCode == kFloor) return std::floor(a);
  if constexpr (kCode == kRound) return std::rint(a);
  if constexpr (kCode == kSquare) return a * a;
  if constexpr (kCode == kSqrt) return std::sqrt(a);
  if constexpr (kCode == kRsqrt) return A(1) / std::sqrt(a);
  if constexpr (kCode == kExp) return std::exp(a);
  if constexpr (kCode == kLog) return std::log(a);
  if constexpr (kCode == kSin) return std::sin(a);
  if constexpr (kCode == kCos) return std::cos(a);
  if constexpr (kCode == kTanh) return std::tanh(a);
  if constexpr (kCode == kSigmoid) return Sigmoid{}.Apply(a);
  if constexpr (kCode == kRelu) return LargerOrNan(a, A(0));
  if constexpr (kCode == kSoftplus)
    return LargerOrNan(a, A(0)) + LogOfOnePlus(std::exp(-std::abs(a)));
  if constexpr (kCode == kErf) return std::erf(a);
  if constexpr (kCode == kGelu) return Gelu{}.Apply(a);
  if constexpr (kCode == kWhere) return a != A(0) ? b : c;
  if constexpr (kCode == kClip) return SmallerOrNan(LargerOrNan(a, b), c);
}

// The same for a code that is known at run time only.
template <typename A>
CAFFE_HOST_DEVICE inline A ApplyFormula(FormulaCode code, A a, A b, A c) {
  switch (code) {
#define CAFFE_FORMULA_APPLY(name, operands) \
  case FormulaCode::k##name:                \
    return ApplyFormula<FormulaCode::k##name>(a, b, c);
    CAFFE_FORMULA_CODES(CAFFE_FORMULA_APPLY)
#undef CAFFE_FORMULA_APPLY
    case FormulaCode::kCount:
      break;
  }
  return a;
}

// Calls fn(std::integral_constant<FormulaCode, code>{}).
template <typename Fn>
CAFFE_FORCE_INLINE inline void VisitFormulaCode(FormulaCode code, const Fn& fn) {
  switch (code) {
#define CAFFE_FORMULA_VISIT(name, operands) \
  case FormulaCode::k##name:                \
    return fn(std::integral_constant<FormulaCode, FormulaCode::k##name>{});
    CAFFE_FORMULA_CODES(CAFFE_FORMULA_VISIT)
#undef CAFFE_FORMULA_VISIT
    case FormulaCode::kCount:
      break;
  }
}

}  // namespace caffe::ops
