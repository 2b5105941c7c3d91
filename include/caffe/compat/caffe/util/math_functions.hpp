// Arithmetic on arrays by BLAS and loops.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "../common.hpp"
#include "mkl_alternate.hpp"

CAFFE_BVLC_BEGIN
// C = alpha op(A) op(B) + beta C, row-major; op(A) is M x K, op(B) is K x N.
template <typename Dtype>
void caffe_cpu_gemm(const CBLAS_TRANSPOSE TransA, const CBLAS_TRANSPOSE TransB, const int M,
                    const int N, const int K, const Dtype alpha, const Dtype* A, const Dtype* B,
                    const Dtype beta, Dtype* C);
// y = alpha op(A) x + beta y; A is M x N.
template <typename Dtype>
void caffe_cpu_gemv(const CBLAS_TRANSPOSE TransA, const int M, const int N, const Dtype alpha,
                    const Dtype* A, const Dtype* x, const Dtype beta, Dtype* y);
// Y = alpha X + Y.
template <typename Dtype>
void caffe_axpy(const int N, const Dtype alpha, const Dtype* X, Dtype* Y);
// Y = alpha X + beta Y.
template <typename Dtype>
void caffe_cpu_axpby(const int N, const Dtype alpha, const Dtype* X, const Dtype beta, Dtype* Y);
// X = alpha X.
template <typename Dtype>
void caffe_scal(const int N, const Dtype alpha, Dtype* X);
// y = alpha x.
template <typename Dtype>
void caffe_cpu_scale(const int n, const Dtype alpha, const Dtype* x, Dtype* y);

template <typename Dtype>
Dtype caffe_cpu_dot(const int n, const Dtype* x, const Dtype* y);
template <typename Dtype>
Dtype caffe_cpu_strided_dot(const int n, const Dtype* x, const int incx, const Dtype* y,
                            const int incy);
// Sum of absolute values.
template <typename Dtype>
Dtype caffe_cpu_asum(const int n, const Dtype* x);

// Copies between host and device memory in any direction and waits for the copy.
void caffe_gpu_memcpy(const size_t N, const void* X, void* Y);

// X and Y may be the same array. In GPU mode each may be in GPU memory.
template <typename Dtype>
void caffe_copy(const int N, const Dtype* X, Dtype* Y) {
  if (X == Y) return;
  if (Caffe::mode() == Caffe::GPU) {
    caffe_gpu_memcpy(sizeof(Dtype) * N, X, Y);
  } else {
    std::memcpy(Y, X, sizeof(Dtype) * N);
  }
}

template <typename Dtype>
void caffe_set(const int N, const Dtype alpha, Dtype* X) {
  std::fill(X, X + N, alpha);
}
inline void caffe_memset(const size_t N, const int alpha, void* X) {
  std::memset(X, alpha, N);
}
template <typename Dtype>
void caffe_add_scalar(const int N, const Dtype alpha, Dtype* X) {
  for (int i = 0; i < N; ++i) X[i] += alpha;
}

// Elementwise; y may be one of the operands.
#define CAFFE_ELEMENTWISE_BINARY(name, expression)                           \
  template <typename Dtype>                                                  \
  void caffe_##name(const int N, const Dtype* a, const Dtype* b, Dtype* y) { \
    for (int i = 0; i < N; ++i) y[i] = expression;                           \
  }
CAFFE_ELEMENTWISE_BINARY(add, a[i] + b[i])
CAFFE_ELEMENTWISE_BINARY(sub, a[i] - b[i])
CAFFE_ELEMENTWISE_BINARY(mul, a[i] * b[i])
CAFFE_ELEMENTWISE_BINARY(div, a[i] / b[i])
#undef CAFFE_ELEMENTWISE_BINARY

#define CAFFE_ELEMENTWISE_UNARY(name, expression)            \
  template <typename Dtype>                                  \
  void caffe_##name(const int N, const Dtype* a, Dtype* y) { \
    for (int i = 0; i < N; ++i) y[i] = expression;           \
  }
CAFFE_ELEMENTWISE_UNARY(sqr, a[i] * a[i])
CAFFE_ELEMENTWISE_UNARY(sqrt, std::sqrt(a[i]))
CAFFE_ELEMENTWISE_UNARY(exp, std::exp(a[i]))
CAFFE_ELEMENTWISE_UNARY(log, std::log(a[i]))
CAFFE_ELEMENTWISE_UNARY(abs, std::abs(a[i]))
CAFFE_ELEMENTWISE_UNARY(cpu_sign, static_cast<Dtype>((Dtype(0) < a[i]) - (a[i] < Dtype(0))))
CAFFE_ELEMENTWISE_UNARY(cpu_sgnbit, static_cast<Dtype>(std::signbit(a[i])))
CAFFE_ELEMENTWISE_UNARY(cpu_fabs, std::fabs(a[i]))
#undef CAFFE_ELEMENTWISE_UNARY

template <typename Dtype>
void caffe_powx(const int n, const Dtype* a, const Dtype b, Dtype* y) {
  for (int i = 0; i < n; ++i) y[i] = std::pow(a[i], b);
}

template <typename Dtype>
inline int8_t caffe_sign(Dtype val) {
  return static_cast<int8_t>((Dtype(0) < val) - (val < Dtype(0)));
}

// Draws from Caffe::rng_stream().
unsigned int caffe_rng_rand();
template <typename Dtype>
Dtype caffe_nextafter(const Dtype b);
template <typename Dtype>
void caffe_rng_uniform(const int n, const Dtype a, const Dtype b, Dtype* r);
template <typename Dtype>
void caffe_rng_gaussian(const int n, const Dtype mu, const Dtype sigma, Dtype* r);
template <typename Dtype>
void caffe_rng_bernoulli(const int n, const Dtype p, int* r);
template <typename Dtype>
void caffe_rng_bernoulli(const int n, const Dtype p, unsigned int* r);

// The same on arrays in GPU memory, launched on the default stream; an error in a build without
// GPUs. For float and double; results may overwrite operands.
template <typename Dtype>
void caffe_gpu_gemm(const CBLAS_TRANSPOSE TransA, const CBLAS_TRANSPOSE TransB, const int M,
                    const int N, const int K, const Dtype alpha, const Dtype* A, const Dtype* B,
                    const Dtype beta, Dtype* C);
template <typename Dtype>
void caffe_gpu_gemv(const CBLAS_TRANSPOSE TransA, const int M, const int N, const Dtype alpha,
                    const Dtype* A, const Dtype* x, const Dtype beta, Dtype* y);
template <typename Dtype>
void caffe_gpu_axpy(const int N, const Dtype alpha, const Dtype* X, Dtype* Y);
template <typename Dtype>
void caffe_gpu_axpby(const int N, const Dtype alpha, const Dtype* X, const Dtype beta, Dtype* Y);
void caffe_gpu_memset(const size_t N, const int alpha, void* X);
// Also for int and unsigned int.
template <typename Dtype>
void caffe_gpu_set(const int N, const Dtype alpha, Dtype* X);
template <typename Dtype>
void caffe_gpu_add_scalar(const int N, const Dtype alpha, Dtype* X);
template <typename Dtype>
void caffe_gpu_scal(const int N, const Dtype alpha, Dtype* X);
template <typename Dtype>
void caffe_gpu_scale(const int n, const Dtype alpha, const Dtype* x, Dtype* y);
template <typename Dtype>
void caffe_gpu_add(const int N, const Dtype* a, const Dtype* b, Dtype* y);
template <typename Dtype>
void caffe_gpu_sub(const int N, const Dtype* a, const Dtype* b, Dtype* y);
template <typename Dtype>
void caffe_gpu_mul(const int N, const Dtype* a, const Dtype* b, Dtype* y);
template <typename Dtype>
void caffe_gpu_div(const int N, const Dtype* a, const Dtype* b, Dtype* y);
template <typename Dtype>
void caffe_gpu_abs(const int n, const Dtype* a, Dtype* y);
template <typename Dtype>
void caffe_gpu_exp(const int n, const Dtype* a, Dtype* y);
template <typename Dtype>
void caffe_gpu_log(const int n, const Dtype* a, Dtype* y);
template <typename Dtype>
void caffe_gpu_powx(const int n, const Dtype* a, const Dtype b, Dtype* y);
template <typename Dtype>
void caffe_gpu_sqrt(const int n, const Dtype* a, Dtype* y);
template <typename Dtype>
void caffe_gpu_sign(const int n, const Dtype* x, Dtype* y);
template <typename Dtype>
void caffe_gpu_sgnbit(const int n, const Dtype* x, Dtype* y);
template <typename Dtype>
void caffe_gpu_fabs(const int n, const Dtype* x, Dtype* y);
// The results are written to host memory; the call waits for them.
template <typename Dtype>
void caffe_gpu_dot(const int n, const Dtype* x, const Dtype* y, Dtype* out);
template <typename Dtype>
void caffe_gpu_asum(const int n, const Dtype* x, Dtype* y);
// Draws from Caffe::rng_stream() on the host and copies, so that a resumed run repeats the numbers.
void caffe_gpu_rng_uniform(const int n, unsigned int* r);
template <typename Dtype>
void caffe_gpu_rng_uniform(const int n, const Dtype a, const Dtype b, Dtype* r);
template <typename Dtype>
void caffe_gpu_rng_gaussian(const int n, const Dtype mu, const Dtype sigma, Dtype* r);

CAFFE_BVLC_END
