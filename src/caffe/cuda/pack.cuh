// Packs: neighbours in memory that one thread reads, processes and writes together, 16 bytes at a
// time.
//
//   const WidePack<float, 8> x = Widen(PackAt<bfloat16, 8>(data, i));
//   StorePack(data, i, x);
#pragma once

#include <bit>
#include <type_traits>

#include "caffe/cuda/launch.cuh"

namespace caffe::cuda {

template <typename T, int N>
struct alignas(std::min<size_t>(sizeof(T) * N, 16)) Pack {
  T values[N];
};

// Number of elements of T in 16 bytes.
template <typename T>
inline constexpr int kPackSize = static_cast<int>(16 / sizeof(T));

template <typename T, int N>
__device__ inline const Pack<T, N>& PackAt(const T* x, int64_t pack) {
  return reinterpret_cast<const Pack<T, N>*>(x)[pack];
}

template <typename T, int N>
bool IsPackAligned(const T* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % alignof(Pack<T, N>) == 0;
}

// A pack of 16-bit numbers, two in a word.
template <int N>
struct alignas(std::min<size_t>(2 * N, 16)) PackWords {
  uint32_t values[N / 2];
};

// The same numbers in the type that T is computed in.
template <typename T, int N>
struct WidePack {
  Accum<T> values[N];
};

// Two bfloat16 numbers are the upper halves of two floats, so widening a word of them is a shift
// and a mask.
template <int N>
__device__ inline WidePack<bfloat16, N> WidenWords(const Pack<bfloat16, N>& x) {
  WidePack<bfloat16, N> wide;
  const auto words = std::bit_cast<PackWords<N>>(x);
#pragma unroll
  for (int i = 0; i < N / 2; ++i) {
    wide.values[2 * i] = std::bit_cast<float>(words.values[i] << 16);
    wide.values[2 * i + 1] = std::bit_cast<float>(words.values[i] & 0xffff0000u);
  }
  return wide;
}

template <typename T, int N>
__device__ inline WidePack<T, N> Widen(const Pack<T, N>& x) {
  if constexpr (std::is_same_v<T, bfloat16> && N % 2 == 0) {
    return WidenWords(x);
  } else {
    WidePack<T, N> wide;
#pragma unroll
    for (int k = 0; k < N; ++k) wide.values[k] = Wide(x.values[k]);
    return wide;
  }
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
// Rounds both to nearest even, with one instruction.
__device__ inline uint32_t NarrowPair(TypeTag<bfloat16>, float low, float high) {
  uint32_t word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
__device__ inline uint32_t NarrowPair(TypeTag<float16>, float low, float high) {
  uint32_t word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
#else
template <typename T>
__device__ inline uint32_t NarrowPair(TypeTag<T>, float low, float high) {
  return T(low).bits | static_cast<uint32_t>(T(high).bits) << 16;
}
#endif

template <typename T, int N>
__device__ inline PackWords<N> NarrowWords(const WidePack<T, N>& x) {
  PackWords<N> words;
#pragma unroll
  for (int i = 0; i < N / 2; ++i)
    words.values[i] = NarrowPair(TypeTag<T>{}, x.values[2 * i], x.values[2 * i + 1]);
  return words;
}

template <typename T, int N>
inline constexpr bool kHasWords = sizeof(T) == 2 && N % 2 == 0;

template <typename T, int N>
__device__ inline Pack<T, N> Narrow(const WidePack<T, N>& x) {
  if constexpr (kHasWords<T, N>) {
    return std::bit_cast<Pack<T, N>>(NarrowWords(x));
  } else {
    Pack<T, N> narrow;
#pragma unroll
    for (int k = 0; k < N; ++k) narrow.values[k] = T(x.values[k]);
    return narrow;
  }
}

// Stores whole words, which the compiler would otherwise split into single numbers.
template <typename T, int N>
__device__ inline void StorePack(T* y, int64_t pack, const WidePack<T, N>& x) {
  if constexpr (kHasWords<T, N>) {
    reinterpret_cast<PackWords<N>*>(y)[pack] = NarrowWords(x);
  } else {
    reinterpret_cast<Pack<T, N>*>(y)[pack] = Narrow(x);
  }
}

}  // namespace caffe::cuda
