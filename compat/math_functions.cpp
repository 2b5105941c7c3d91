#include "caffe/compat/caffe/util/math_functions.hpp"

#include <cblas.h>

#include <limits>
#include <random>

#include "caffe/compat/caffe/util/rng.hpp"
#include "caffe/error.hpp"

namespace caffe::bvlc {

template <>
void caffe_cpu_gemm<float>(const CBLAS_TRANSPOSE TransA, const CBLAS_TRANSPOSE TransB, const int M,
                           const int N, const int K, const float alpha, const float* A,
                           const float* B, const float beta, float* C) {
  cblas_sgemm(CblasRowMajor, TransA, TransB, M, N, K, alpha, A, TransA == CblasNoTrans ? K : M, B,
              TransB == CblasNoTrans ? N : K, beta, C, N);
}
template <>
void caffe_cpu_gemm<double>(const CBLAS_TRANSPOSE TransA, const CBLAS_TRANSPOSE TransB, const int M,
                            const int N, const int K, const double alpha, const double* A,
                            const double* B, const double beta, double* C) {
  cblas_dgemm(CblasRowMajor, TransA, TransB, M, N, K, alpha, A, TransA == CblasNoTrans ? K : M, B,
              TransB == CblasNoTrans ? N : K, beta, C, N);
}

template <>
void caffe_cpu_gemv<float>(const CBLAS_TRANSPOSE TransA, const int M, const int N,
                           const float alpha, const float* A, const float* x, const float beta,
                           float* y) {
  cblas_sgemv(CblasRowMajor, TransA, M, N, alpha, A, N, x, 1, beta, y, 1);
}
template <>
void caffe_cpu_gemv<double>(const CBLAS_TRANSPOSE TransA, const int M, const int N,
                            const double alpha, const double* A, const double* x, const double beta,
                            double* y) {
  cblas_dgemv(CblasRowMajor, TransA, M, N, alpha, A, N, x, 1, beta, y, 1);
}

template <>
void caffe_axpy<float>(const int N, const float alpha, const float* X, float* Y) {
  cblas_saxpy(N, alpha, X, 1, Y, 1);
}
template <>
void caffe_axpy<double>(const int N, const double alpha, const double* X, double* Y) {
  cblas_daxpy(N, alpha, X, 1, Y, 1);
}

template <typename Dtype>
void caffe_cpu_axpby(const int N, const Dtype alpha, const Dtype* X, const Dtype beta, Dtype* Y) {
  for (int i = 0; i < N; ++i) Y[i] = alpha * X[i] + beta * Y[i];
}

template <typename Dtype>
void caffe_scal(const int N, const Dtype alpha, Dtype* X) {
  for (int i = 0; i < N; ++i) X[i] *= alpha;
}
template <typename Dtype>
void caffe_cpu_scale(const int n, const Dtype alpha, const Dtype* x, Dtype* y) {
  for (int i = 0; i < n; ++i) y[i] = alpha * x[i];
}

template <>
float caffe_cpu_strided_dot<float>(const int n, const float* x, const int incx, const float* y,
                                   const int incy) {
  return cblas_sdot(n, x, incx, y, incy);
}
template <>
double caffe_cpu_strided_dot<double>(const int n, const double* x, const int incx, const double* y,
                                     const int incy) {
  return cblas_ddot(n, x, incx, y, incy);
}
template <typename Dtype>
Dtype caffe_cpu_dot(const int n, const Dtype* x, const Dtype* y) {
  return caffe_cpu_strided_dot(n, x, 1, y, 1);
}

template <>
float caffe_cpu_asum<float>(const int n, const float* x) {
  return cblas_sasum(n, x, 1);
}
template <>
double caffe_cpu_asum<double>(const int n, const double* x) {
  return cblas_dasum(n, x, 1);
}

unsigned int caffe_rng_rand() {
  return static_cast<unsigned int>((*caffe_rng())());
}

template <typename Dtype>
Dtype caffe_nextafter(const Dtype b) {
  return std::nextafter(b, std::numeric_limits<Dtype>::max());
}

template <typename Dtype>
void caffe_rng_uniform(const int n, const Dtype a, const Dtype b, Dtype* r) {
  Require(a <= b, "caffe_rng_uniform: the bounds are ", a, " and ", b,
          "; the first must not be the larger one");
  std::uniform_real_distribution<Dtype> draw(a, caffe_nextafter(b));
  for (int i = 0; i < n; ++i) r[i] = draw(*caffe_rng());
}

template <typename Dtype>
void caffe_rng_gaussian(const int n, const Dtype mu, const Dtype sigma, Dtype* r) {
  Require(sigma > 0, "caffe_rng_gaussian: sigma is ", sigma, "; it must be positive");
  std::normal_distribution<Dtype> draw(mu, sigma);
  for (int i = 0; i < n; ++i) r[i] = draw(*caffe_rng());
}

namespace {

template <typename Dtype, typename Integer>
void Bernoulli(int n, Dtype p, Integer* r) {
  Require(p >= 0 && p <= 1, "caffe_rng_bernoulli: p is ", p, "; it must be 0 to 1");
  std::bernoulli_distribution draw(static_cast<double>(p));
  for (int i = 0; i < n; ++i) r[i] = draw(*caffe_rng()) ? 1 : 0;
}

}  // namespace

template <typename Dtype>
void caffe_rng_bernoulli(const int n, const Dtype p, int* r) {
  Bernoulli(n, p, r);
}
template <typename Dtype>
void caffe_rng_bernoulli(const int n, const Dtype p, unsigned int* r) {
  Bernoulli(n, p, r);
}

#define CAFFE_INSTANTIATE_MATH(T)                                              \
  template void caffe_cpu_axpby<T>(const int, const T, const T*, const T, T*); \
  template void caffe_scal<T>(const int, const T, T*);                         \
  template void caffe_cpu_scale<T>(const int, const T, const T*, T*);          \
  template T caffe_cpu_dot<T>(const int, const T*, const T*);                  \
  template T caffe_nextafter<T>(const T);                                      \
  template void caffe_rng_uniform<T>(const int, const T, const T, T*);         \
  template void caffe_rng_gaussian<T>(const int, const T, const T, T*);        \
  template void caffe_rng_bernoulli<T>(const int, const T, int*);              \
  template void caffe_rng_bernoulli<T>(const int, const T, unsigned int*)
CAFFE_INSTANTIATE_MATH(float);
CAFFE_INSTANTIATE_MATH(double);
#undef CAFFE_INSTANTIATE_MATH

}  // namespace caffe::bvlc
