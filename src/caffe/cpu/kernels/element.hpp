// Reads single elements of the smaller operand beside a tensor.
#pragma once

#include "caffe/tensor/tensor_view.hpp"

namespace caffe::cpu {

// Element i of a tensor of any type.
inline double ElementOf(const TensorView& view, int64_t i) {
  return VisitFloat(view.dtype, [&]<typename T>(TypeTag<T>) {
    return static_cast<double>(view.as<const T>()[i]);
  });
}

}  // namespace caffe::cpu
