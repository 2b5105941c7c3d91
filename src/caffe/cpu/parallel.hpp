// Loops over elements: threads outside, vectors inside.
#pragma once

#include <cstdint>

#include "caffe/core/cpu_clones.hpp"
#include "caffe/core/parallel_for.hpp"
#include "caffe/dtype.hpp"

namespace caffe::cpu {

using caffe::ParallelFor;

// Elements worth a thread of their own.
inline constexpr int64_t kPointwiseGrain = 16384;

template <typename T, typename Fn>
CAFFE_CPU_CLONES void MapRange(Fn fn, const T* x, T* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = T(fn(static_cast<Accum<T>>(x[i])));
}

template <typename T, typename Fn>
CAFFE_CPU_CLONES void MapRange(Fn fn, const T* x, const T* z, T* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    y[i] = T(fn(static_cast<Accum<T>>(x[i]), static_cast<Accum<T>>(z[i])));
  }
}

// y = fn(x), y = fn(x, z), element by element in the type's arithmetic.
template <typename T, typename Fn>
void Map(const Fn& fn, const T* x, T* y, int64_t count) {
  ParallelFor(count, kPointwiseGrain, [&](int64_t begin, int64_t end) {
    MapRange<T>(fn, x + begin, y + begin, end - begin);
  });
}

template <typename T, typename Fn>
void Map(const Fn& fn, const T* x, const T* z, T* y, int64_t count) {
  ParallelFor(count, kPointwiseGrain, [&](int64_t begin, int64_t end) {
    MapRange<T>(fn, x + begin, z + begin, y + begin, end - begin);
  });
}

}  // namespace caffe::cpu
