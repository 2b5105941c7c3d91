// Conversions of quantised values.
#pragma once

#include "caffe/ops/kernel.hpp"

namespace caffe::cuda {

// Converts x to y's type, scale and layout. At least one of them is 8-bit; the other is 8-bit or
// float.
void ConvertNumbers(const KernelContext& ctx, const TensorView& x, const TensorView& y);

}  // namespace caffe::cuda
