// Access to single elements of operands of any type: small operands of other types, and all
// operands of losses.
#pragma once

#include "caffe/ops/kernel.hpp"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe::cpu {

// Element i of a tensor of any type; for quantized tensors the value, not the number.
inline double ElementOf(const TensorView& view, int64_t i) {
  const auto scale = static_cast<double>(view.scale);
  if (view.dtype == DType::kUInt8) return scale * view.as<const uint8_t>()[i];
  if (view.dtype == DType::kInt8) return scale * view.as<const int8_t>()[i];
  return VisitFloat(view.dtype, [&]<typename T>(TypeTag<T>) {
    return static_cast<double>(view.as<const T>()[i]);
  });
}

// The same for an operand that may be absent; a negative index always counts as absent.
inline double ElementOr(const KernelContext& ctx, int operand, int64_t i, double otherwise) {
  if (operand < 0 || !ctx.has_input(operand)) return otherwise;
  return ElementOf(ctx.input(operand), i);
}

inline void SetElement(const TensorView& view, int64_t i, double value) {
  VisitFloat(view.dtype, [&]<typename T>(TypeTag<T>) { view.as<T>()[i] = T(value); });
}

}  // namespace caffe::cpu
