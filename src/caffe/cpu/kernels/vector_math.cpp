#include "caffe/cpu/kernels/vector_math.hpp"

#include "caffe/cpu/kernels/simd_math.hpp"
#include "caffe/cpu/parallel.hpp"

namespace caffe::cpu {

void Tanh(const float* x, int64_t count, float factor, float* y) {
  MapRange([factor](float a) CAFFE_FORCE_INLINE { return ::tanhf(factor * a); }, x, y, count);
}
void Tanh(const double* x, int64_t count, double factor, double* y) {
  MapRange([factor](double a) CAFFE_FORCE_INLINE { return ::tanh(factor * a); }, x, y, count);
}

void Exp(const float* x, int64_t count, float* y) {
  MapRange([](float a) CAFFE_FORCE_INLINE { return ::expf(a); }, x, y, count);
}
void Exp(const double* x, int64_t count, double* y) {
  MapRange([](double a) CAFFE_FORCE_INLINE { return ::exp(a); }, x, y, count);
}

}  // namespace caffe::cpu
