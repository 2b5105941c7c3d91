// Launches our own kernels: a body per element in grid-stride loops on the step's stream.
//
// Sources that include this header are compiled twice: by nvcc, and by the host compiler with the
// runtime of tests/cuda_on_host, which runs every kernel against the references without a GPU. So
// bodies are named functors, and launches go through the runtime's functions.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "caffe/cuda/cuda_check.hpp"
#include "caffe/cuda/cuda_device.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cuda {

inline constexpr int kBlockThreads = 256;
inline constexpr int kWarpThreads = 32;
// Enough to fill the largest chip several times; loops stride over the rest.
inline constexpr int64_t kMaxBlocks = 4096;

// Number of blocks of `threads` for `work` items, limited to kMaxBlocks.
inline int64_t BlocksFor(int64_t work, int threads = kBlockThreads) {
  return std::min((work + threads - 1) / threads, kMaxBlocks);
}

// kernel<<<blocks, threads>>>(arguments...) on the context's stream; does nothing if blocks is 0.
template <typename... Parameters, typename... Arguments>
void Launch(const KernelContext& ctx, void (*kernel)(Parameters...), int64_t blocks, int threads,
            Arguments&&... arguments) {
  if (blocks <= 0) return;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = StreamOf(ctx);
  CAFFE_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...));
}

__device__ inline int64_t GlobalThread() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline int64_t GridThreads() {
  return static_cast<int64_t>(gridDim.x) * blockDim.x;
}

// Quotient and remainder. Tensors have fewer than 2^31 elements, so in practice the fast 32-bit
// division runs; a 64-bit one takes some hundred instructions.
__device__ inline int64_t Divide(int64_t a, int64_t b, int64_t* remainder) {
  if (((a | b) >> 32) == 0) {
    const uint32_t quotient = static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
    *remainder =
        static_cast<int64_t>(static_cast<uint32_t>(a) - quotient * static_cast<uint32_t>(b));
    return quotient;
  }
  *remainder = a % b;
  return a / b;
}
__device__ inline int64_t Divide(int64_t a, int64_t b) {
  int64_t remainder;
  return Divide(a, b, &remainder);
}
__device__ inline int64_t Remainder(int64_t a, int64_t b) {
  int64_t remainder;
  Divide(a, b, &remainder);
  return remainder;
}

template <typename Body>
__global__ void __launch_bounds__(kBlockThreads) ForEachKernel(Body body, int64_t count) {
  for (int64_t i = GlobalThread(); i < count; i += GridThreads()) body(i);
}

// body(i) for each i of [0, count), in any order.
template <typename Body>
void ForEach(const KernelContext& ctx, int64_t count, const Body& body) {
  Launch(ctx, ForEachKernel<Body>, BlocksFor(count), kBlockThreads, body, count);
}

// Converts a value to the type that T is computed in, and back.
template <typename T>
__device__ inline Accum<T> Wide(T value) {
  return static_cast<Accum<T>>(value);
}

}  // namespace caffe::cuda
