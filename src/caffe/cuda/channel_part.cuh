// Where a kernel finds the elements of a tensor: in memory of their own, or among the channels of a
// larger tensor.
#pragma once

#include "caffe/cuda/divisor.cuh"
#include "caffe/cuda/reduce.cuh"

namespace caffe::cuda {

// In memory of their own.
struct Apart {
  using Packs = Apart;
  static constexpr bool kIsPart = false;

  template <int N>
  bool HasPacks(int64_t) const {
    return true;
  }
  template <int N>
  Apart InPacks() const {
    return {};
  }
  __device__ int64_t At(int64_t i) const { return i; }
};

// Packs of neighbours, counted in packs of the larger tensor.
struct PacksOfPart {
  Divisor row;
  int64_t gap, begin;

  __device__ int64_t At(int64_t i) const {
    return i + row.Divide(static_cast<uint32_t>(i)) * gap + begin;
  }
};

// As some channels of a larger tensor: `row` elements, and then a gap.
struct ChannelPart {
  using Packs = PacksOfPart;
  static constexpr bool kIsPart = true;
  int64_t row, gap, begin;

  ChannelPart(const Covered& whole, int64_t offset, int64_t channels)
      : row(channels * whole.inner),
        gap((whole.covered - channels) * whole.inner),
        begin(offset * whole.inner) {}

  template <int N>
  bool HasPacks(int64_t elements) const {
    return row % N == 0 && gap % N == 0 && begin % N == 0 && elements / N <= kMostDividend;
  }
  template <int N>
  PacksOfPart InPacks() const {
    return {Divisor(row / N), gap / N, begin / N};
  }
  __device__ int64_t At(int64_t i) const { return i + Divide(i, row) * gap + begin; }
};

}  // namespace caffe::cuda
