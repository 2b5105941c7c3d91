// caffe_gpu_*: individual launches of the kernels that plans use.
#include <array>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "caffe/compat/caffe/util/math_functions.hpp"
#include "caffe/compat/caffe/util/rng.hpp"
#include "caffe/error.hpp"
#include "caffe/ops/activations.hpp"
#include "caffe/ops/arrays.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/ops/reduce.hpp"
#include "compat/gpu.hpp"

namespace caffe::bvlc {
namespace {

template <typename Dtype>
TensorView ArrayOf(int64_t count, const Dtype* data) {
  Require(count >= 0, "an array of ", count, " elements; the number must not be negative");
  return PlainView(Shape({count}), kDTypeOf<Dtype>, data);
}

// y = op(inputs...), each with n elements.
template <typename Dtype, typename... Inputs>
void Compute(const Op& op, int n, Dtype* y, Inputs... inputs) {
  Device& gpu = CurrentGpu();
  const std::array<TensorView, sizeof...(Inputs)> in = {ArrayOf(n, inputs)...};
  const TensorView out = ArrayOf(n, y);
  if (n > 0) RunOn(gpu, KernelOn(gpu, op, in, {&out, 1}), in, {&out, 1});
}

// *result = op(inputs...), in host memory.
template <typename Dtype, typename... Inputs>
void ComputeNumber(const Op& op, int n, Dtype* result, Inputs... inputs) {
  *result = Dtype(0);
  Device& gpu = CurrentGpu();
  const std::array<TensorView, sizeof...(Inputs)> in = {ArrayOf(n, inputs)...};
  if (n == 0) return;
  const TensorView out = PlainView(Shape(), kDTypeOf<Dtype>, ScratchOn(gpu, sizeof(Dtype)));
  RunOn(gpu, KernelOn(gpu, op, in, {&out, 1}), in, {&out, 1});
  CopyOn(gpu, result, out.data, sizeof(Dtype));
}

struct Product {
  int64_t rows, columns, inner;
  bool transpose_a, transpose_b;
  auto operator<=>(const Product&) const = default;
};

// cuBLAS searches for an algorithm when a kernel is created, which is slow, so kernels are cached.
Kernel KernelOf(Device& gpu, const Product& product, std::span<const TensorView> factors,
                const TensorView& result, bool is_aligned) {
  static constexpr size_t kMost = 256;
  static std::mutex mutex;
  static auto& kernels = *new std::map<std::tuple<const Device*, DType, bool, Product>, Kernel>();
  const std::lock_guard lock(mutex);
  if (kernels.size() >= kMost) kernels.clear();
  Kernel& kernel = kernels[{&gpu, result.dtype, is_aligned, product}];
  if (kernel.run == nullptr) {
    const ops::Gemm op{.rows = product.rows,
                       .columns = product.columns,
                       .inner = product.inner,
                       .transpose_a = product.transpose_a,
                       .transpose_b = product.transpose_b};
    kernel = KernelOn(gpu, op, factors, {&result, 1});
  }
  return kernel;
}

// c = or += op(a) op(b).
template <typename Dtype>
void Multiply(Device& gpu, const Product& product, const Dtype* a, const Dtype* b, bool adds,
              Dtype* c) {
  const std::array<TensorView, 2> factors = {ArrayOf(product.rows * product.inner, a),
                                             ArrayOf(product.inner * product.columns, b)};
  const TensorView result = ArrayOf(product.rows * product.columns, c);
  const bool is_aligned = AreAligned(factors) && AreAligned({&result, 1});
  const Kernel kernel = KernelOf(gpu, product, factors, result, is_aligned);
  RunOn(gpu, kernel, factors, {&result, 1}, adds ? OperandSet{0} : OperandSet{});
}

// c = alpha op(a) op(b) + beta c. Kernels support only alpha 1 and beta 0 or 1; other factors need
// extra launches.
template <typename Dtype>
void MultiplyAdd(const Product& product, Dtype alpha, const Dtype* a, const Dtype* b, Dtype beta,
                 Dtype* c) {
  Device& gpu = CurrentGpu();
  const int count = static_cast<int>(product.rows * product.columns);
  if (count == 0) return;
  if (product.inner == 0 || alpha == Dtype(0)) {
    return beta == Dtype(0) ? caffe_gpu_set(count, beta, c) : caffe_gpu_scal(count, beta, c);
  }
  if (beta == Dtype(0)) {
    Multiply(gpu, product, a, b, /*adds=*/false, c);
    if (alpha != Dtype(1)) caffe_gpu_scal(count, alpha, c);
  } else if (alpha == Dtype(1)) {
    if (beta != Dtype(1)) caffe_gpu_scal(count, beta, c);
    Multiply(gpu, product, a, b, /*adds=*/true, c);
  } else {
    auto* const product_alone = static_cast<Dtype*>(ScratchOn(gpu, count * sizeof(Dtype)));
    Multiply(gpu, product, a, b, /*adds=*/false, product_alone);
    caffe_gpu_axpby(count, alpha, product_alone, beta, c);
  }
}

template <typename Dtype>
void CopyFromHost(const std::vector<Dtype>& values, Dtype* to) {
  caffe_gpu_memcpy(values.size() * sizeof(Dtype), values.data(), to);
}

}  // namespace

void caffe_gpu_memcpy(const size_t N, const void* X, void* Y) {
  CopyOn(CurrentGpu(), Y, X, N);
}

void caffe_gpu_memset(const size_t N, const int alpha, void* X) {
  Device& gpu = CurrentGpu();
  gpu.MakeCurrent();
  if (alpha == 0) {
    gpu.default_stream().FillZero(X, N);
  } else {
    CopyFromHost(std::vector<char>(N, static_cast<char>(alpha)), static_cast<char*>(X));
  }
}

template <typename Dtype>
void caffe_gpu_set(const int N, const Dtype alpha, Dtype* X) {
  if constexpr (std::is_floating_point_v<Dtype>) {
    Compute(ops::Fill{alpha}, N, X);
  } else if (alpha == Dtype(0)) {
    caffe_gpu_memset(N * sizeof(Dtype), 0, X);
  } else {
    CopyFromHost(std::vector<Dtype>(N, alpha), X);
  }
}
template void caffe_gpu_set<int>(const int, const int, int*);
template void caffe_gpu_set<unsigned int>(const int, const unsigned int, unsigned int*);

template <typename Dtype>
void caffe_gpu_gemm(const CBLAS_TRANSPOSE TransA, const CBLAS_TRANSPOSE TransB, const int M,
                    const int N, const int K, const Dtype alpha, const Dtype* A, const Dtype* B,
                    const Dtype beta, Dtype* C) {
  MultiplyAdd({M, N, K, TransA != CblasNoTrans, TransB != CblasNoTrans}, alpha, A, B, beta, C);
}
template <typename Dtype>
void caffe_gpu_gemv(const CBLAS_TRANSPOSE TransA, const int M, const int N, const Dtype alpha,
                    const Dtype* A, const Dtype* x, const Dtype beta, Dtype* y) {
  const bool is_transposed = TransA != CblasNoTrans;
  const int rows = is_transposed ? N : M, inner = is_transposed ? M : N;
  MultiplyAdd({rows, 1, inner, is_transposed, false}, alpha, A, x, beta, y);
}

template <typename Dtype>
void caffe_gpu_axpy(const int N, const Dtype alpha, const Dtype* X, Dtype* Y) {
  caffe_gpu_axpby(N, alpha, X, Dtype(1), Y);
}
template <typename Dtype>
void caffe_gpu_axpby(const int N, const Dtype alpha, const Dtype* X, const Dtype beta, Dtype* Y) {
  Compute(ops::Axpby(alpha, beta), N, Y, X, Y);
}
template <typename Dtype>
void caffe_gpu_add_scalar(const int N, const Dtype alpha, Dtype* X) {
  Compute(ops::Affine(1, alpha), N, X, X);
}
template <typename Dtype>
void caffe_gpu_scal(const int N, const Dtype alpha, Dtype* X) {
  caffe_gpu_scale(N, alpha, X, X);
}
template <typename Dtype>
void caffe_gpu_scale(const int n, const Dtype alpha, const Dtype* x, Dtype* y) {
  Compute(ops::Affine(alpha, 0), n, y, x);
}
template <typename Dtype>
void caffe_gpu_add(const int N, const Dtype* a, const Dtype* b, Dtype* y) {
  Compute(ops::Axpby(1, 1), N, y, a, b);
}
template <typename Dtype>
void caffe_gpu_sub(const int N, const Dtype* a, const Dtype* b, Dtype* y) {
  Compute(ops::Axpby(1, -1), N, y, a, b);
}
template <typename Dtype>
void caffe_gpu_mul(const int N, const Dtype* a, const Dtype* b, Dtype* y) {
  Compute(ops::EltwiseProd{}, N, y, a, b);
}
template <typename Dtype>
void caffe_gpu_div(const int N, const Dtype* a, const Dtype* b, Dtype* y) {
  Compute(ops::Divide{}, N, y, a, b);
}
template <typename Dtype>
void caffe_gpu_abs(const int n, const Dtype* a, Dtype* y) {
  Compute(ops::Abs{}, n, y, a);
}
template <typename Dtype>
void caffe_gpu_fabs(const int n, const Dtype* x, Dtype* y) {
  caffe_gpu_abs(n, x, y);
}
template <typename Dtype>
void caffe_gpu_exp(const int n, const Dtype* a, Dtype* y) {
  Compute(ops::Exp(1, 0), n, y, a);
}
template <typename Dtype>
void caffe_gpu_log(const int n, const Dtype* a, Dtype* y) {
  Compute(ops::Log(1, 1, 0), n, y, a);
}
template <typename Dtype>
void caffe_gpu_powx(const int n, const Dtype* a, const Dtype b, Dtype* y) {
  Compute(ops::RaiseTo(b), n, y, a);
}
template <typename Dtype>
void caffe_gpu_sqrt(const int n, const Dtype* a, Dtype* y) {
  Compute(ops::SquareRoot{}, n, y, a);
}
template <typename Dtype>
void caffe_gpu_sign(const int n, const Dtype* x, Dtype* y) {
  Compute(ops::Sign{}, n, y, x);
}
template <typename Dtype>
void caffe_gpu_sgnbit(const int n, const Dtype* x, Dtype* y) {
  Compute(ops::SignBit{}, n, y, x);
}

template <typename Dtype>
void caffe_gpu_dot(const int n, const Dtype* x, const Dtype* y, Dtype* out) {
  ComputeNumber(ops::SumToAxes{{0, 0}}, n, out, x, y);
}
template <typename Dtype>
void caffe_gpu_asum(const int n, const Dtype* x, Dtype* y) {
  ComputeNumber(ops::Reduce{ops::Reduction::kAbsSum}, n, y, x);
}

void caffe_gpu_rng_uniform(const int n, unsigned int* r) {
  std::vector<unsigned int> values(n);
  for (unsigned int& value : values) value = caffe_rng_rand();
  CopyFromHost(values, r);
}
template <typename Dtype>
void caffe_gpu_rng_uniform(const int n, const Dtype a, const Dtype b, Dtype* r) {
  std::vector<Dtype> values(n);
  caffe_rng_uniform(n, a, b, values.data());
  CopyFromHost(values, r);
}
template <typename Dtype>
void caffe_gpu_rng_gaussian(const int n, const Dtype mu, const Dtype sigma, Dtype* r) {
  std::vector<Dtype> values(n);
  caffe_rng_gaussian(n, mu, sigma, values.data());
  CopyFromHost(values, r);
}

#define CAFFE_INSTANTIATE_GPU_UNARY(T, name) \
  template void caffe_gpu_##name<T>(const int, const T*, T*)
#define CAFFE_INSTANTIATE_GPU_BINARY(T, name) \
  template void caffe_gpu_##name<T>(const int, const T*, const T*, T*)
#define CAFFE_INSTANTIATE_GPU_MATH(T)                                                              \
  template void caffe_gpu_gemm<T>(const CBLAS_TRANSPOSE, const CBLAS_TRANSPOSE, const int,         \
                                  const int, const int, const T, const T*, const T*, const T, T*); \
  template void caffe_gpu_gemv<T>(const CBLAS_TRANSPOSE, const int, const int, const T, const T*,  \
                                  const T*, const T, T*);                                          \
  template void caffe_gpu_axpy<T>(const int, const T, const T*, T*);                               \
  template void caffe_gpu_axpby<T>(const int, const T, const T*, const T, T*);                     \
  template void caffe_gpu_set<T>(const int, const T, T*);                                          \
  template void caffe_gpu_add_scalar<T>(const int, const T, T*);                                   \
  template void caffe_gpu_scal<T>(const int, const T, T*);                                         \
  template void caffe_gpu_scale<T>(const int, const T, const T*, T*);                              \
  template void caffe_gpu_powx<T>(const int, const T*, const T, T*);                               \
  CAFFE_INSTANTIATE_GPU_BINARY(T, add);                                                            \
  CAFFE_INSTANTIATE_GPU_BINARY(T, sub);                                                            \
  CAFFE_INSTANTIATE_GPU_BINARY(T, mul);                                                            \
  CAFFE_INSTANTIATE_GPU_BINARY(T, div);                                                            \
  CAFFE_INSTANTIATE_GPU_BINARY(T, dot);                                                            \
  CAFFE_INSTANTIATE_GPU_UNARY(T, abs);                                                             \
  CAFFE_INSTANTIATE_GPU_UNARY(T, fabs);                                                            \
  CAFFE_INSTANTIATE_GPU_UNARY(T, exp);                                                             \
  CAFFE_INSTANTIATE_GPU_UNARY(T, log);                                                             \
  CAFFE_INSTANTIATE_GPU_UNARY(T, sqrt);                                                            \
  CAFFE_INSTANTIATE_GPU_UNARY(T, sign);                                                            \
  CAFFE_INSTANTIATE_GPU_UNARY(T, sgnbit);                                                          \
  CAFFE_INSTANTIATE_GPU_UNARY(T, asum);                                                            \
  template void caffe_gpu_rng_uniform<T>(const int, const T, const T, T*);                         \
  template void caffe_gpu_rng_gaussian<T>(const int, const T, const T, T*)
CAFFE_INSTANTIATE_GPU_MATH(float);
CAFFE_INSTANTIATE_GPU_MATH(double);

}  // namespace caffe::bvlc
