// Copies a batch of floats to a data layer's top.
#pragma once

#include <algorithm>

#include "caffe/tensor/tensor_view.hpp"

namespace caffe {

// Converts as many values as `top` has to its type. They must already have its layout.
inline void StoreBatch(const float* values, const TensorView& top) {
  VisitFloat(top.dtype, [&]<typename T>(TypeTag<T>) {
    std::transform(values, values + top.count(), top.as<T>(), [](float x) { return T(x); });
  });
}

}  // namespace caffe
