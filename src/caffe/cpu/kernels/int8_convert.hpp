// Conversions of quantized values.
#pragma once

#include "caffe/tensor/tensor_view.hpp"

namespace caffe::cpu {

// y = x in y's type, scale and layout. At least one of them has 8-bit numbers; the other may have
// floats.
void ConvertNumbers(const TensorView& x, const TensorView& y);

}  // namespace caffe::cpu
