// Conversions between float and the 16-bit types, a run of elements at a time.
#pragma once

#include <cstdint>

#include "caffe/dtype.hpp"

namespace caffe::cpu {

// y[i] = x[i], rounded to nearest even where the type has fewer bits. `x` and `y` do not overlap.
void ConvertRow(const float16* x, float* y, int64_t count);
void ConvertRow(const bfloat16* x, float* y, int64_t count);
void ConvertRow(const float* x, float16* y, int64_t count);
void ConvertRow(const float* x, bfloat16* y, int64_t count);

}  // namespace caffe::cpu
