// Elementwise kernels with 16 bytes per access.
#pragma once

#include "caffe/cuda/pack.cuh"

namespace caffe::cuda {

template <typename Fn, typename T, int N, typename... X>
__device__ inline void MapPack(const Fn& fn, T* y, int64_t pack, const WidePack<X, N>&... x) {
  WidePack<T, N> result;
#pragma unroll
  for (int k = 0; k < N; ++k) result.values[k] = fn(x.values[k]...);
  StorePack(y, pack, result);
}

// Processes the first packs * N elements as packs, the rest one by one. A thread reads its elements
// before it writes them, so y may share an operand's memory.
template <int N, typename Fn, typename T, typename... X>
__global__ void __launch_bounds__(kBlockThreads)
    MapKernel(Fn fn, int64_t packs, int64_t count, T* y, const X*... x) {
  for (int64_t i = GlobalThread(); i < packs; i += GridThreads()) {
    MapPack<Fn, T, N, X...>(fn, y, i, Widen(Pack<X, N>(PackAt<X, N>(x, i)))...);
  }
  for (int64_t i = packs * N + GlobalThread(); i < count; i += GridThreads()) {
    y[i] = T(fn(Wide(x[i])...));
  }
}

// y[i] = fn(x[i]...), where fn takes and returns the compute types of operands and result.
template <typename Fn, typename T, typename... X>
void Map(const KernelContext& ctx, const Fn& fn, int64_t count, T* y, const X*... x) {
  constexpr int N = kPackSize<T>;
  const bool is_aligned = (IsPackAligned<T, N>(y) && ... && IsPackAligned<X, N>(x));
  const int64_t packs = is_aligned ? count / N : 0;
  Launch(ctx, MapKernel<N, Fn, T, X...>, BlocksFor(is_aligned ? (count + N - 1) / N : count),
         kBlockThreads, fn, packs, count, y, x...);
}

}  // namespace caffe::cuda
