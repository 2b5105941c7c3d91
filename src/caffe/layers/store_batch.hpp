// From a batch of floats to a data layer's top.
#pragma once

#include <algorithm>

#include "caffe/tensor/tensor_view.hpp"

namespace caffe {

// Writes as many values as `top` has, in its type. They are in its layout already.
inline void StoreBatch(const float* values, const TensorView& top) {
  VisitFloat(top.dtype, [&]<typename T>(TypeTag<T>) {
    std::transform(values, values + top.count(), top.as<T>(), [](float x) { return T(x); });
  });
}

}  // namespace caffe
