// Functions of arrays, by vector functions if available (simd_math.hpp). x and y may be the same.
#pragma once

#include <cstdint>

namespace caffe::cpu {

// y[i] = tanh(factor * x[i])
void Tanh(const float* x, int64_t count, float factor, float* y);
void Tanh(const double* x, int64_t count, double factor, double* y);

// y[i] = exp(x[i])
void Exp(const float* x, int64_t count, float* y);
void Exp(const double* x, int64_t count, double* y);

}  // namespace caffe::cpu
