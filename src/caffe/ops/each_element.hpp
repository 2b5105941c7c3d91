// Ops that compute each element of their output by itself, from whole operands. The formula is
// written once and shared by every device (cpu/kernels/each_element.hpp,
// cuda/kernels/each_element.cuh). Such an op has
//   static constexpr int kInputs
//   template <typename A, typename... In>
//   CAFFE_HOST_DEVICE inline A Element(int64_t i, const In&... in) const
// where in[k] is element k of an operand in the arithmetic A. An operand that may be missing is
// asked with is_present(). Input 0 has the op's data type.
#pragma once

#include <type_traits>

#include "caffe/dtype.hpp"
#include "caffe/ops/op.hpp"

namespace caffe::ops {

// Whether an op computes in double and reads each operand in the type of its memory.
template <typename Op>
constexpr bool ReadsAsStored() {
  if constexpr (requires { Op::kNumericRule; }) return Op::kNumericRule == NumericRule::kAsStored;
  return false;
}

// Whether operand `input` has the type of the op's data.
template <typename Op>
constexpr bool IsData(size_t input) {
  if constexpr (requires { Op::kExactInputs; }) {
    return !ReadsAsStored<Op>() && !Op::kExactInputs.contains(input);
  }
  return !ReadsAsStored<Op>();
}

// The arithmetic for data of type T.
template <typename Op, typename T>
using ComputedIn = std::conditional_t<ReadsAsStored<Op>(), double, Accum<T>>;

}  // namespace caffe::ops
