// Reductions of rows whose elements are used again afterwards: softmax, normalisation of rows,
// positions of maxima. A group of threads owns a row; the group's size depends on the row's length.
#pragma once

#include "caffe/cuda/launch.cuh"

namespace caffe::cuda {

struct Sum {
  template <typename A>
  __device__ A operator()(A a, A b) const {
    return a + b;
  }
};
struct Largest {
  template <typename A>
  __device__ A operator()(A a, A b) const {
    return a < b ? b : a;
  }
};

template <typename A>
__device__ inline A ShuffleXor(A value, int lanes) {
  return __shfl_xor_sync(0xffffffffu, value, lanes);
}

// Returns fn over all lanes to each lane, always in the same order.
template <typename Fn, typename A>
__device__ inline A ReduceWarp(Fn fn, A value) {
  for (int lanes = kWarpThreads / 2; lanes > 0; lanes /= 2)
    value = fn(value, ShuffleXor(value, lanes));
  return value;
}

// Returns fn over all threads of the block to each thread. The block has whole warps; all threads
// must call it.
template <typename Fn, typename A>
__device__ inline A ReduceBlock(Fn fn, A value) {
  __shared__ A partial[kWarpThreads];
  const int warps = static_cast<int>(blockDim.x) / kWarpThreads;
  value = ReduceWarp(fn, value);
  if (warps == 1) return value;
  __syncthreads();  // until all threads have read the previous call's result
  if (threadIdx.x % kWarpThreads == 0) partial[threadIdx.x / kWarpThreads] = value;
  __syncthreads();
  value = partial[0];
  for (int i = 1; i < warps; ++i) value = fn(value, partial[i]);
  return value;
}

struct ThreadGroup {
  __device__ static int64_t First() { return GlobalThread(); }
  __device__ static int64_t Stride() { return GridThreads(); }
  __device__ int rank() const { return 0; }
  __device__ int size() const { return 1; }
  template <typename Fn, typename A>
  __device__ A Reduce(Fn, A value) const {
    return value;
  }
};

struct WarpGroup {
  __device__ static int64_t First() { return GlobalThread() / kWarpThreads; }
  __device__ static int64_t Stride() { return GridThreads() / kWarpThreads; }
  __device__ int rank() const { return static_cast<int>(threadIdx.x) % kWarpThreads; }
  __device__ int size() const { return kWarpThreads; }
  template <typename Fn, typename A>
  __device__ A Reduce(Fn fn, A value) const {
    return ReduceWarp(fn, value);
  }
};

struct BlockGroup {
  __device__ static int64_t First() { return blockIdx.x; }
  __device__ static int64_t Stride() { return gridDim.x; }
  __device__ int rank() const { return static_cast<int>(threadIdx.x); }
  __device__ int size() const { return static_cast<int>(blockDim.x); }
  template <typename Fn, typename A>
  __device__ A Reduce(Fn fn, A value) const {
    return ReduceBlock(fn, value);
  }
};

template <typename Group, typename Body>
__global__ void __launch_bounds__(kBlockThreads) ForRowsKernel(Body body, int64_t rows) {
  for (int64_t row = Group::First(); row < rows; row += Group::Stride()) body(row, Group{});
}

// Calls body(row, group) for each row, with one block per row.
template <typename Body>
void ForBlocks(const KernelContext& ctx, int64_t rows, const Body& body) {
  Launch(ctx, ForRowsKernel<BlockGroup, Body>, std::min(rows, kMaxBlocks), kBlockThreads, body,
         rows);
}

// Calls body(row, group) for each row of `length` elements at a distance of `step`. All threads of
// a group must call its Reduce equally often. If elements of other rows lie in between, each row
// gets one thread, so that a warp reads neighbours.
template <typename Body>
void ForRows(const KernelContext& ctx, int64_t rows, int64_t length, int64_t step,
             const Body& body) {
  constexpr int64_t kWarpLength = 1024;
  if (step > 1 || length < 8) {
    Launch(ctx, ForRowsKernel<ThreadGroup, Body>, BlocksFor(rows), kBlockThreads, body, rows);
  } else if (length <= kWarpLength) {
    Launch(ctx, ForRowsKernel<WarpGroup, Body>, BlocksFor(rows * kWarpThreads), kBlockThreads, body,
           rows);
  } else {
    ForBlocks(ctx, rows, body);
  }
}

// Positions of the rows along an axis: row r's element i is at Offset(r) + i * step.
struct Rows {
  int64_t count = 0, length = 0, step = 1;

  __device__ int64_t Offset(int64_t row) const {
    if (step == 1) return row * length;
    int64_t within;
    const int64_t outer = Divide(row, step, &within);
    return outer * length * step + within;
  }
};

template <typename Body>
void ForRows(const KernelContext& ctx, const Rows& rows, const Body& body) {
  ForRows(ctx, rows.count, rows.length, rows.step, body);
}

}  // namespace caffe::cuda
