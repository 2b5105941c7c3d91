// Element by element, 16 bytes per access.
#pragma once

#include "caffe/cuda/launch.cuh"

namespace caffe::cuda {

// N neighbours that are read and written together, 16 bytes at a time.
template <typename T, int N>
struct alignas(std::min<size_t>(sizeof(T) * N, 16)) Pack {
  T values[N];
};

template <typename T, int N>
__device__ inline const Pack<T, N>& PackAt(const T* x, int64_t pack) {
  return reinterpret_cast<const Pack<T, N>*>(x)[pack];
}

template <typename Fn, typename T, int N, typename... X>
__device__ inline void MapPack(const Fn& fn, T* y, int64_t pack, const Pack<X, N>... x) {
  Pack<T, N> result;
#pragma unroll
  for (int k = 0; k < N; ++k) result.values[k] = T(fn(Wide(x.values[k])...));
  reinterpret_cast<Pack<T, N>*>(y)[pack] = result;
}

// The first packs * N elements by packs, the rest one by one. A thread reads its elements before it
// writes them, so y may share an operand's memory.
template <int N, typename Fn, typename T, typename... X>
__global__ void __launch_bounds__(kBlockThreads)
    MapKernel(Fn fn, int64_t packs, int64_t count, T* y, const X*... x) {
  for (int64_t i = GlobalThread(); i < packs; i += GridThreads()) {
    MapPack<Fn, T, N, X...>(fn, y, i, PackAt<X, N>(x, i)...);
  }
  for (int64_t i = packs * N + GlobalThread(); i < count; i += GridThreads()) {
    y[i] = T(fn(Wide(x[i])...));
  }
}

template <typename T, int N>
bool IsPackAligned(const T* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % alignof(Pack<T, N>) == 0;
}

// y[i] = fn(x[i]...), operands and result in the types that theirs are computed in.
template <typename Fn, typename T, typename... X>
void Map(const KernelContext& ctx, const Fn& fn, int64_t count, T* y, const X*... x) {
  constexpr int N = static_cast<int>(16 / sizeof(T));
  const bool is_aligned = (IsPackAligned<T, N>(y) && ... && IsPackAligned<X, N>(x));
  const int64_t packs = is_aligned ? count / N : 0;
  Launch(ctx, MapKernel<N, Fn, T, X...>, BlocksFor(is_aligned ? (count + N - 1) / N : count),
         kBlockThreads, fn, packs, count, y, x...);
}

}  // namespace caffe::cuda
