// Softsign on GPUs, for each floating-point type. Work is launched in the context's stream.
#include <cuda_runtime.h>

#include "caffe/ops/kernel.hpp"
#include "softsign.hpp"

namespace example {
namespace {

constexpr int kThreads = 256;

template <typename T, typename Op>
__global__ void ForwardKernel(Op op, int64_t count, const T* x, T* y) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) y[i] = T(op.Apply(static_cast<caffe::Accum<T>>(x[i])));
}

template <typename T, typename Op>
__global__ void BackwardKernel(Op op, int64_t count, const T* x, const T* dy, T* dx) {
  using A = caffe::Accum<T>;
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) dx[i] = T(op.Apply(static_cast<A>(x[i]), static_cast<A>(dy[i])));
}

unsigned Blocks(int64_t count) {
  return static_cast<unsigned>((count + kThreads - 1) / kThreads);
}

void Forward(const Softsign& op, const caffe::KernelContext& ctx) {
  const int64_t count = ctx.output(0).count();
  if (count == 0) return;
  caffe::VisitFloat(ctx.output(0).dtype, [&]<typename T>(caffe::TypeTag<T>) {
    ForwardKernel<<<Blocks(count), kThreads, 0, static_cast<cudaStream_t>(ctx.stream->native())>>>(
        op, count, ctx.input(0).as<const T>(), ctx.output(0).as<T>());
  });
}

void Backward(const SoftsignGrad& op, const caffe::KernelContext& ctx) {
  const int64_t count = ctx.output(0).count();
  if (count == 0) return;
  caffe::VisitFloat(ctx.output(0).dtype, [&]<typename T>(caffe::TypeTag<T>) {
    BackwardKernel<<<Blocks(count), kThreads, 0, static_cast<cudaStream_t>(ctx.stream->native())>>>(
        op, count, ctx.input(0).as<const T>(), ctx.input(1).as<const T>(), ctx.output(0).as<T>());
  });
}

CAFFE_REGISTER_KERNEL(caffe::DeviceKind::kCuda, Softsign, Forward);
CAFFE_REGISTER_KERNEL(caffe::DeviceKind::kCuda, SoftsignGrad, Backward);

}  // namespace
}  // namespace example
