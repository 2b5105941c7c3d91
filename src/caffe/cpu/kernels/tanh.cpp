#include "caffe/cpu/kernels/tanh.hpp"

#include <cmath>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#if __GLIBC_PREREQ(2, 35)
// What math.h says too, but only where all of -ffast-math is on: there are vector versions.
extern "C" __attribute__((simd("notinbranch"))) float tanhf(float) noexcept;
extern "C" __attribute__((simd("notinbranch"))) double tanh(double) noexcept;
// Sanitizers cannot run the resolvers that choose a clone before they have started themselves.
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define CAFFE_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#endif
#endif
#ifndef CAFFE_CLONES
#define CAFFE_CLONES
#endif

namespace caffe::cpu {

CAFFE_CLONES void Tanh(const float* x, int64_t count, float factor, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = ::tanhf(factor * x[i]);
}

CAFFE_CLONES void Tanh(const double* x, int64_t count, double factor, double* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = ::tanh(factor * x[i]);
}

}  // namespace caffe::cpu
