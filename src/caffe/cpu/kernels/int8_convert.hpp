// Conversions of quantised values.
#pragma once

#include "caffe/tensor/tensor_view.hpp"

namespace caffe::cpu {

// y = x in y's type, scale and layout. One of them has 8-bit numbers, the other has, too, or
// floats.
void ConvertNumbers(const TensorView& x, const TensorView& y);

}  // namespace caffe::cpu
