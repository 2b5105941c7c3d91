// Parallel loops over elements: threads outside, vectors inside.
#pragma once

#include <cstdint>
#include <cstring>

#include "caffe/core/cpu_clones.hpp"
#include "caffe/core/parallel_for.hpp"
#include "caffe/dtype.hpp"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe::cpu {

using caffe::ParallelFor;

// Minimum number of elements per thread.
inline constexpr int64_t kPointwiseGrain = 16384;

// Copies the bytes of `from` to `to`, which has as many; does nothing if both have one address.
inline void CopyBytes(const TensorView& from, const TensorView& to) {
  if (from.data == to.data) return;
  constexpr int64_t kBytesAtOnce = 1 << 16;
  ParallelFor(static_cast<int64_t>(to.bytes()), kBytesAtOnce, [&](int64_t begin, int64_t end) {
    std::memcpy(to.as<char>() + begin, from.as<const char>() + begin, end - begin);
  });
}

// Elements that are computed together, in memory of their own. Each is computed by vector
// functions, wherever it is and whether or not x and y are the same, so that its bits do not depend
// on how threads share the elements.
inline constexpr int64_t kMapBlock = 64;

template <typename T, typename Fn>
CAFFE_CPU_CLONES void MapRange(Fn fn, const T* x, T* y, int64_t count) {
  T from[kMapBlock] = {}, to[kMapBlock];
  for (int64_t first = 0; first < count; first += kMapBlock) {
    const bool is_whole = count - first >= kMapBlock;
    const size_t bytes = static_cast<size_t>(is_whole ? kMapBlock : count - first) * sizeof(T);
    std::memcpy(static_cast<void*>(from), x + first, is_whole ? sizeof(from) : bytes);
    for (int64_t i = 0; i < kMapBlock; ++i) to[i] = T(fn(static_cast<Accum<T>>(from[i])));
    std::memcpy(static_cast<void*>(y + first), to, is_whole ? sizeof(to) : bytes);
  }
}

template <typename T, typename Fn>
CAFFE_CPU_CLONES void MapRange(Fn fn, const T* x, const T* z, T* y, int64_t count) {
  T from[kMapBlock] = {}, with[kMapBlock] = {}, to[kMapBlock];
  for (int64_t first = 0; first < count; first += kMapBlock) {
    const bool is_whole = count - first >= kMapBlock;
    const size_t bytes = static_cast<size_t>(is_whole ? kMapBlock : count - first) * sizeof(T);
    std::memcpy(static_cast<void*>(from), x + first, is_whole ? sizeof(from) : bytes);
    std::memcpy(static_cast<void*>(with), z + first, is_whole ? sizeof(with) : bytes);
    for (int64_t i = 0; i < kMapBlock; ++i)
      to[i] = T(fn(static_cast<Accum<T>>(from[i]), static_cast<Accum<T>>(with[i])));
    std::memcpy(static_cast<void*>(y + first), to, is_whole ? sizeof(to) : bytes);
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

// Calls fn(first, lanes) for all channels: kLanes at a time, or all if there are fewer. The last
// call overlaps the previous one, so fn must give the same results when repeated; copying part of a
// vector would take longer than computing it again.
template <int64_t kLanes, typename Fn>
inline CAFFE_FORCE_INLINE void ForEachLanes(int64_t channels, const Fn& fn) {
  if (channels < kLanes) return fn(0, channels);
  int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) fn(c, kLanes);
  if (c < channels) fn(channels - kLanes, kLanes);
}

}  // namespace caffe::cpu
