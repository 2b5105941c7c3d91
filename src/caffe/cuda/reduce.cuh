// K sums over all axes of a tensor except those that a smaller tensor covers, in an order that
// depends only on the shapes: each block sums a part, a second launch adds the parts.
#pragma once

#include "caffe/cuda/groups.cuh"
#include "caffe/cuda/numbers.cuh"
#include "caffe/ops/broadcast.hpp"

namespace caffe::cuda {

template <int K, typename A>
struct Sums {
  A values[K] = {};
};

struct StoreSum {
  Gradient to;

  template <typename A>
  __device__ void operator()(int64_t c, const Sums<1, A>& sums) const {
    to.Store(c, sums.values[0]);
  }
};

// Element (o, c, i) of outer x covered x inner; the sums run over o and i.
struct Covered {
  int64_t outer, covered, inner;

  Covered(int64_t outer, int64_t covered, int64_t inner)
      : outer(outer), covered(covered), inner(inner) {
    // With a single column, all rows are contiguous.
    if (covered == 1) this->inner *= outer, this->outer = 1;
  }
  explicit Covered(const ops::CoveredView& view) : Covered(view.outer, view.covered, view.inner) {}

  bool has_columns() const { return inner == 1; }
  int64_t length() const { return outer * inner; }
};

// A warp takes 32 neighbouring columns of one row at a time.
inline constexpr int kTileRows = kBlockThreads / kWarpThreads;

// How a sum is divided among blocks.
struct Parts {
  int64_t count = 1;
  int threads = kBlockThreads;  // of a block that sums one column's elements

  explicit Parts(const Covered& view) {
    constexpr int64_t kBlocks = 1024, kLeastRows = 16 * kTileRows, kLeastElements = 4096;
    const int64_t tiles =
        view.has_columns() ? (view.covered + kWarpThreads - 1) / kWarpThreads : view.covered;
    const int64_t least = view.has_columns() ? kLeastRows : kLeastElements;
    const int64_t most = std::max<int64_t>(1, view.length() / least);
    count = std::clamp<int64_t>(kBlocks / std::max<int64_t>(tiles, 1), 1, most);
    if (view.length() <= 1024) threads = kWarpThreads;
  }
};

// Element k of column c of part p.
template <typename A>
struct PartialSums {
  A* sums;
  int64_t parts, covered;

  __device__ A& At(int k, int64_t part, int64_t c) const {
    return sums[(static_cast<int64_t>(k) * parts + part) * covered + c];
  }
};

template <int K, typename A, typename Finish>
__device__ inline void StoreSums(const PartialSums<A>& partial, int64_t part, int64_t c,
                                 const Sums<K, A>& sums, const Finish& finish) {
  if (partial.parts == 1) {
    finish(c, sums);
    return;
  }
#pragma unroll
  for (int k = 0; k < K; ++k) partial.At(k, part, c) = sums.values[k];
}

// For inner == 1: lanes are columns, warps are rows.
template <int K, typename A, typename Body, typename Finish>
__global__ void __launch_bounds__(kBlockThreads)
    SumColumnsKernel(Body body, Finish finish, int64_t rows, int64_t columns,
                     PartialSums<A> partial) {
  __shared__ A tile[K][kTileRows][kWarpThreads];
  const int lane = threadIdx.x % kWarpThreads, warp = threadIdx.x / kWarpThreads;
  const int64_t tiles = (columns + kWarpThreads - 1) / kWarpThreads;
  for (int64_t block = blockIdx.x; block < tiles * partial.parts; block += gridDim.x) {
    int64_t column_tile;
    const int64_t part = Divide(block, tiles, &column_tile);
    const int64_t c = column_tile * kWarpThreads + lane;
    Sums<K, A> sums;
    if (c < columns) {
      const int64_t last = rows * (part + 1) / partial.parts;
      for (int64_t row = rows * part / partial.parts + warp; row < last; row += kTileRows) {
        body(c, row * columns + c, sums);
      }
    }
#pragma unroll
    for (int k = 0; k < K; ++k) tile[k][warp][lane] = sums.values[k];
    __syncthreads();
    if (warp == 0 && c < columns) {
#pragma unroll
      for (int k = 0; k < K; ++k) {
        for (int i = 1; i < kTileRows; ++i) sums.values[k] += tile[k][i][lane];
      }
      StoreSums(partial, part, c, sums, finish);
    }
    __syncthreads();
  }
}

// For any inner: a block per column and part.
template <int K, typename A, typename Body, typename Finish>
__global__ void __launch_bounds__(kBlockThreads)
    SumElementsKernel(Body body, Finish finish, Covered view, PartialSums<A> partial) {
  const int64_t length = view.outer * view.inner;
  for (int64_t block = blockIdx.x; block < view.covered * partial.parts; block += gridDim.x) {
    int64_t c;
    const int64_t part = Divide(block, view.covered, &c);
    const int64_t last = length * (part + 1) / partial.parts;
    Sums<K, A> sums;
    for (int64_t i = length * part / partial.parts + threadIdx.x; i < last; i += blockDim.x) {
      int64_t within;
      const int64_t row = Divide(i, view.inner, &within);
      body(c, (row * view.covered + c) * view.inner + within, sums);
    }
#pragma unroll
    for (int k = 0; k < K; ++k) sums.values[k] = ReduceBlock(Sum{}, sums.values[k]);
    if (threadIdx.x == 0) StoreSums(partial, part, c, sums, finish);
  }
}

template <int K, typename A>
struct AddPartialSums {
  PartialSums<A> partial;

  __device__ void operator()(int64_t, int64_t at, Sums<K, A>& sums) const {
    const int64_t stride = partial.parts * partial.covered;
#pragma unroll
    for (int k = 0; k < K; ++k) sums.values[k] += partial.sums[k * stride + at];
  }
};

// Bytes of workspace for SumCovered.
template <int K, typename A>
size_t SumWorkspace(const Covered& view) {
  const int64_t parts = Parts(view).count;
  return parts == 1 ? 0 : static_cast<size_t>(K * parts * view.covered) * sizeof(A);
}

template <int K, typename A, typename Body, typename Finish>
void LaunchSums(const KernelContext& ctx, const Covered& view, const Parts& parts,
                const PartialSums<A>& partial, const Body& body, const Finish& finish) {
  if (view.has_columns()) {
    const int64_t tiles = (view.covered + kWarpThreads - 1) / kWarpThreads;
    Launch(ctx, SumColumnsKernel<K, A, Body, Finish>, std::min(tiles * partial.parts, kMaxBlocks),
           kBlockThreads, body, finish, view.outer, view.covered, partial);
  } else {
    Launch(ctx, SumElementsKernel<K, A, Body, Finish>,
           std::min(view.covered * partial.parts, kMaxBlocks), parts.threads, body, finish, view,
           partial);
  }
}

// For each c, body(c, element index, sums) adds an element to the sums and finish(c, sums) uses
// them. `workspace` must have SumWorkspace<K, A>(view) bytes.
template <int K, typename A, typename Body, typename Finish>
void SumCovered(const KernelContext& ctx, const Covered& view, void* workspace, const Body& body,
                const Finish& finish) {
  const Parts parts(view);
  const PartialSums<A> partial{static_cast<A*>(workspace), parts.count, view.covered};
  LaunchSums<K, A>(ctx, view, parts, partial, body, finish);
  if (parts.count == 1) return;
  // The parts of the columns are the rows of a matrix.
  const Covered sums(parts.count, view.covered, 1);
  LaunchSums<K, A>(ctx, sums, Parts(sums), PartialSums<A>{nullptr, 1, view.covered},
                   AddPartialSums<K, A>{partial}, finish);
}

}  // namespace caffe::cuda
