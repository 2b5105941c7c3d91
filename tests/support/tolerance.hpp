// How far results may be from the float64 reference, relative to the largest reference value.
#pragma once

#include "caffe/dtype.hpp"

namespace caffe::testing {

inline double ToleranceOf(DType dtype) {
  switch (dtype) {
    case DType::kDouble:
      return 1e-11;
    case DType::kFloat:
      return 2e-5;
    case DType::kFloat16:
      return 4e-3;  // a few units in the last of 11 bits
    case DType::kBFloat16:
      return 3e-2;  // a few units in the last of 8 bits
  }
  return 0;
}

}  // namespace caffe::testing
