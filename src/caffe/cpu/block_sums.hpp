// Vectorized sums over a block's elements, in double. The order of additions is part of the
// contract: it depends only on the number of elements, not on the processor.
#pragma once

#include <cstdint>
#include <cstring>

#include "caffe/cpu/parallel.hpp"

namespace caffe::cpu {

// Consecutive vectors of lanes are added to kSums accumulators in turn, so that no addition waits
// for the previous one.
inline constexpr int kSums = 4, kLanes = 8;
using Lanes = double __attribute__((vector_size(kLanes * sizeof(double))));

template <typename T>
struct LanesOf {
  typedef T Type __attribute__((vector_size(kLanes * sizeof(T))));
};

// Number of elements that are read in lanes; the rest is added one by one.
inline int64_t WholeLanes(int64_t count) {
  return count / (kSums * kLanes) * (kSums * kLanes);
}

template <typename T>
[[gnu::always_inline]] inline void LoadLanes(const T* x, Lanes* lanes) {
  typename LanesOf<T>::Type loaded;
  std::memcpy(&loaded, x, sizeof(loaded));
  *lanes = __builtin_convertvector(loaded, Lanes);
}

inline double SumOfLanes(const Lanes* sums) {
  double sum = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < kSums; ++i) sum += sums[i][lane];
  }
  return sum;
}

template <typename T>
CAFFE_CPU_CLONES double SumOfSquares(const T* x, int64_t count) {
  Lanes sums[kSums] = {};
  const int64_t whole = WholeLanes(count);
  for (int64_t i = 0; i < whole; i += kSums * kLanes) {
#pragma GCC unroll 4
    for (int k = 0; k < kSums; ++k) {
      Lanes value;
      LoadLanes(x + i + k * kLanes, &value);
      sums[k] += value * value;
    }
  }
  double sum = SumOfLanes(sums);
  for (int64_t i = whole; i < count; ++i) {
    const auto value = static_cast<double>(x[i]);
    sum += value * value;
  }
  return sum;
}

}  // namespace caffe::cpu
