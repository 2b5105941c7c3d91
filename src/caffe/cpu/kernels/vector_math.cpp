#include "caffe/cpu/kernels/tanh.hpp"

#include <cmath>

#include "caffe/cpu/parallel.hpp"

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#if __GLIBC_PREREQ(2, 35)
// math.h declares these vector versions only with the whole of -ffast-math.
extern "C" __attribute__((simd("notinbranch"))) float tanhf(float) noexcept;
extern "C" __attribute__((simd("notinbranch"))) double tanh(double) noexcept;
#endif
#endif

namespace caffe::cpu {

CAFFE_CPU_CLONES void Tanh(const float* x, int64_t count, float factor, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = ::tanhf(factor * x[i]);
}

CAFFE_CPU_CLONES void Tanh(const double* x, int64_t count, double factor, double* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = ::tanh(factor * x[i]);
}

}  // namespace caffe::cpu
