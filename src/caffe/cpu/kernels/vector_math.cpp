#include "caffe/cpu/kernels/vector_math.hpp"

#include "caffe/cpu/kernels/fast_math.hpp"
#include "caffe/cpu/kernels/simd_math.hpp"
#include "caffe/cpu/parallel.hpp"

namespace caffe::cpu {

void Tanh(const float* x, int64_t count, float factor, float* y) {
  MapRange([factor](float a) CAFFE_FORCE_INLINE { return FastTanh(factor * a); }, x, y, count);
}
void Tanh(const double* x, int64_t count, double factor, double* y) {
  MapRange([factor](double a) CAFFE_FORCE_INLINE { return ::tanh(factor * a); }, x, y, count);
}

void Sigmoid(const float* x, int64_t count, float* y) {
  MapRange([](float a) CAFFE_FORCE_INLINE { return FastSigmoid(a); }, x, y, count);
}
void Sigmoid(const double* x, int64_t count, double* y) {
  MapRange([](double a) CAFFE_FORCE_INLINE { return 0.5 * ::tanh(0.5 * a) + 0.5; }, x, y, count);
}

}  // namespace caffe::cpu
