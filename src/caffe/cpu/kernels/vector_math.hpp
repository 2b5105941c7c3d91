// tanh of arrays.
#pragma once

#include <cstdint>

namespace caffe::cpu {

// y[i] = tanh(factor * x[i]), with the C library's vector functions if available (glibc 2.35 on
// x86-64: error at most 4 units in the last place). x and y may be the same.
void Tanh(const float* x, int64_t count, float factor, float* y);
void Tanh(const double* x, int64_t count, double factor, double* y);

}  // namespace caffe::cpu
