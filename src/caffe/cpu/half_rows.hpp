// Converts rows of elements between float and the 16-bit types.
#pragma once

#include <cstdint>

#include "caffe/dtype.hpp"

namespace caffe::cpu {

// y[i] = x[i], rounded to nearest even if the type has fewer bits. `x` and `y` must not overlap.
void ConvertRow(const float16* x, float* y, int64_t count);
void ConvertRow(const bfloat16* x, float* y, int64_t count);
void ConvertRow(const float* x, float16* y, int64_t count);
void ConvertRow(const float* x, bfloat16* y, int64_t count);

}  // namespace caffe::cpu
