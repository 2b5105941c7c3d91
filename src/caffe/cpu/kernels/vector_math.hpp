// Functions of arrays: of floats by fast_math.hpp, of doubles by vector functions if available
// (simd_math.hpp). x and y may be the same.
#pragma once

#include <cstdint>

namespace caffe::cpu {

// y[i] = tanh(factor * x[i])
void Tanh(const float* x, int64_t count, float factor, float* y);
void Tanh(const double* x, int64_t count, double factor, double* y);

// y[i] = 1 / (1 + exp(-x[i]))
void Sigmoid(const float* x, int64_t count, float* y);
void Sigmoid(const double* x, int64_t count, double* y);

}  // namespace caffe::cpu
