// The allowed difference between a kernel's result and exact arithmetic on the same inputs.
#pragma once

#include "caffe/dtype.hpp"

namespace caffe::testing {

// An element may be off by relative * (|want| + root mean square of the tensor).
constexpr double RelativeTolerance(DType dtype) {
  switch (dtype) {
    case DType::kDouble:
      return 1e-11;
    case DType::kFloat:
      return 2e-5;
    case DType::kFloat16:
      return 2e-3;
    case DType::kBFloat16:
      return 1.2e-2;
    case DType::kUInt8:
    case DType::kInt8:
      return 0;
  }
  return 0;
}

}  // namespace caffe::testing
