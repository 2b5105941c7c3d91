// For kernels that never compute in 16 bits: losses, statistics, normalisation of rows.
#pragma once

#include "caffe/dtype.hpp"
#include "caffe/error.hpp"

namespace caffe::cuda {

// Calls fn(TypeTag<T>{}) with float or double.
template <typename Fn>
decltype(auto) VisitWide(DType dtype, Fn&& fn) {
  if (dtype == DType::kDouble) return fn(TypeTag<double>{});
  CAFFE_ASSERT(dtype == DType::kFloat, "computes in float or double, not ", Name(dtype));
  return fn(TypeTag<float>{});
}

}  // namespace caffe::cuda
