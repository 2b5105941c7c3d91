// Arithmetic of two tensors, and choices between them, with NumPy's broadcasting. Value() is an
// op's formula for single elements.
#pragma once

#include <cmath>
#include <iterator>
#include <string>

#include "caffe/ops/broadcast_steps.hpp"
#include "caffe/ops/each_element.hpp"

namespace caffe::ops {

enum class Combination : int32_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kMaximum,
  kMinimum,
  kPower
};

// True if the maximum or minimum of a and b is a. NaN is both; equal numbers are the first one.
template <typename A>
CAFFE_HOST_DEVICE inline bool IsFirst(Combination kind, A a, A b) {
  return a != a || (kind == Combination::kMaximum ? a >= b : a <= b);
}

// (a, b) -> (y)
struct Combine {
  static constexpr std::string_view kName = "Combine";
  static constexpr int kInputs = 2;
  Combination kind = Combination::kAdd;
  BroadcastSteps broadcast;

  std::string Attributes() const {
    constexpr const char* kNames[] = {"add",     "subtract", "multiply", "divide",
                                      "maximum", "minimum",  "power"};
    const auto number = static_cast<uint32_t>(kind);  // from a file it may be any
    return number < std::size(kNames) ? kNames[number] : "unknown";
  }
  LayoutRule layout_rule() const {
    return broadcast.RepeatsNone(kInputs) ? kFollowBothInputs : LayoutRule{};
  }
  template <typename A>
  CAFFE_HOST_DEVICE inline A Value(A a, A b) const {
    switch (kind) {
      case Combination::kAdd:
        return a + b;
      case Combination::kSubtract:
        return a - b;
      case Combination::kMultiply:
        return a * b;
      case Combination::kDivide:
        return a / b;
      case Combination::kMaximum:
      case Combination::kMinimum:
        return IsFirst(kind, a, b) ? a : b;
      case Combination::kPower:
        break;
    }
    return std::pow(a, b);
  }
  template <typename A, typename X, typename Y>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const X& a, const Y& b) const {
    return Value<A>(a[broadcast.At(0, i)], b[broadcast.At(1, i)]);
  }
};

// (a, b, dy) -> (dx):  dy times the derivative by operand `operand`, in y's shape: the sum over
// the repetitions is the operand's gradient. Not for kAdd and kSubtract, which need no op.
struct CombineGrad {
  static constexpr std::string_view kName = "CombineGrad";
  static constexpr int kInputs = 3;
  Combination kind = Combination::kMultiply;
  int32_t operand = 0;
  BroadcastSteps broadcast;

  LayoutRule layout_rule() const {
    if (!broadcast.RepeatsNone(kInputs)) return {};
    return {.inputs = {0, 1, 2}, .outputs = {0}};
  }
  template <typename A>
  CAFFE_HOST_DEVICE inline A Value(A a, A b, A dy) const {
    const bool is_first = operand == 0;
    switch (kind) {
      case Combination::kAdd:
      case Combination::kSubtract:
        break;
      case Combination::kMultiply:
        return dy * (is_first ? b : a);
      case Combination::kDivide:
        return is_first ? dy / b : -(dy / b) * (a / b);
      case Combination::kMaximum:
      case Combination::kMinimum:
        return IsFirst(kind, a, b) == is_first ? dy : A(0);
      case Combination::kPower:
        if (is_first) return b == A(0) ? A(0) : dy * b * std::pow(a, b - A(1));
        return a == A(0) && b >= A(0) ? A(0) : dy * std::pow(a, b) * std::log(a);
    }
    return dy;
  }
  template <typename A, typename X, typename Y, typename Dy>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const X& a, const Y& b, const Dy& dy) const {
    return Value<A>(a[broadcast.At(0, i)], b[broadcast.At(1, i)], dy[broadcast.At(2, i)]);
  }
};

// (a, b, condition) -> (y):  y = condition == 0 ? b : a.
struct Choose {
  static constexpr std::string_view kName = "Choose";
  static constexpr int kInputs = 3;
  static constexpr OperandSet kExactInputs = {2};
  BroadcastSteps broadcast;

  template <typename A>
  CAFFE_HOST_DEVICE inline A Value(A a, A b, A condition) const {
    return condition == A(0) ? b : a;
  }
  template <typename A, typename X, typename Y, typename C>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const X& a, const Y& b, const C& condition) const {
    return Value<A>(a[broadcast.At(0, i)], b[broadcast.At(1, i)], condition[broadcast.At(2, i)]);
  }
};

// (dy, condition) -> (dx):  dy where (condition == 0) == is_second, else 0, in y's shape.
struct ChooseGrad {
  static constexpr std::string_view kName = "ChooseGrad";
  static constexpr int kInputs = 2;
  static constexpr OperandSet kExactInputs = {1};
  bool is_second = false;
  BroadcastSteps broadcast;

  template <typename A>
  CAFFE_HOST_DEVICE inline A Value(A dy, A condition) const {
    return (condition == A(0)) == is_second ? dy : A(0);
  }
  template <typename A, typename Dy, typename C>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const Dy& dy, const C& condition) const {
    return Value<A>(dy[broadcast.At(0, i)], condition[broadcast.At(1, i)]);
  }
};

}  // namespace caffe::ops
