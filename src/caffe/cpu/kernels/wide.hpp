// Kernels that never compute in 16 bits: losses, statistics, normalization of rows.
#pragma once

#include "caffe/dtype.hpp"
#include "caffe/error.hpp"

namespace caffe::cpu {

// Calls fn(TypeTag<T>{}) with float or double.
template <typename Fn>
void VisitWide(DType dtype, Fn&& fn) {
  if (dtype == DType::kDouble) return fn(TypeTag<double>{});
  CAFFE_ASSERT(dtype == DType::kFloat, "computes in float or double, not ", Name(dtype));
  fn(TypeTag<float>{});
}

}  // namespace caffe::cpu
