// Ops that compute each element of their output independently, from whole operands. The formula is
// written once and shared by every device (cpu/kernels/each_element.hpp,
// cuda/kernels/each_element.cuh). Such an op has
//   static constexpr int kInputs
//   template <typename A, typename... In>
//   CAFFE_HOST_DEVICE inline A Element(int64_t i, const In&... in) const
// where in[k] is element k of an operand in the arithmetic A, and in.is_present() tells whether an
// optional operand is given. Input 0 has the op's data type.
#pragma once

#include <type_traits>

#include "caffe/dtype.hpp"
#include "caffe/ops/op.hpp"

namespace caffe::ops {

// True if an op computes in double and reads each operand in its stored type.
template <typename Op>
constexpr bool ReadsAsStored() {
  if constexpr (requires { Op::kNumericRule; }) return Op::kNumericRule == NumericRule::kAsStored;
  return false;
}

// True if operand `input` has the op's data type.
template <typename Op>
constexpr bool IsData(size_t input) {
  if constexpr (requires { Op::kExactInputs; }) {
    return !ReadsAsStored<Op>() && !Op::kExactInputs.contains(input);
  }
  return !ReadsAsStored<Op>();
}

// Arithmetic type for data of type T.
template <typename Op, typename T>
using ComputedIn = std::conditional_t<ReadsAsStored<Op>(), double, Accum<T>>;

}  // namespace caffe::ops
