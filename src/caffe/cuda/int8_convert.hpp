// Conversions of quantised values.
#pragma once

#include "caffe/ops/kernel.hpp"

namespace caffe::cuda {

// y = x in y's type, scale and layout. One of them has 8-bit numbers, the other has, too, or
// floats.
void ConvertNumbers(const KernelContext& ctx, const TensorView& x, const TensorView& y);

}  // namespace caffe::cuda
