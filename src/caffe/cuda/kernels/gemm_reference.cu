// Matrix products of any types, by tiles in shared memory. For what cuBLASLt refuses.
#include "caffe/cuda/launch.cuh"
#include "caffe/cuda/numbers.cuh"
#include "caffe/ops/gemm.hpp"

namespace caffe::cuda {
namespace {

// Rows, columns and depth of a tile; a block's threads cover 8 of 32 lines at a time.
constexpr int kTile = 32, kLines = kBlockThreads / kTile, kRounds = kTile / kLines;

// A matrix in row-major order, or one whose transpose is.
template <typename T>
struct Matrix {
  const T* data;
  int64_t rows, columns;
  bool is_transposed;

  // The tile at (r0, c0), zeros beyond the matrix. A column of padding keeps a tile's columns in
  // different banks.
  __device__ void Load(int64_t r0, int64_t c0, Accum<T> (&tile)[kTile][kTile + 1]) const {
    const int lane = threadIdx.x % kTile;
#pragma unroll
    for (int i = 0; i < kRounds; ++i) {
      const int line = threadIdx.x / kTile + i * kLines;
      // Lanes go along memory.
      const int row = is_transposed ? lane : line, column = is_transposed ? line : lane;
      const int64_t r = r0 + row, c = c0 + column;
      tile[row][column] = r < rows && c < columns
                              ? Wide(data[is_transposed ? c * rows + r : r * columns + c])
                              : Accum<T>(0);
    }
  }
};

template <typename T, typename C>
__global__ void __launch_bounds__(kBlockThreads)
    GemmKernel(Matrix<T> a, Matrix<T> b, Numbers bias, bool adds, C* c) {
  using A = Accum<T>;
  __shared__ A a_tile[kTile][kTile + 1], b_tile[kTile][kTile + 1];
  const int lane = threadIdx.x % kTile, line = threadIdx.x / kTile;
  const int64_t column_tiles = (b.columns + kTile - 1) / kTile;
  const int64_t tiles = (a.rows + kTile - 1) / kTile * column_tiles;
  for (int64_t block = blockIdx.x; block < tiles; block += gridDim.x) {
    int64_t column_tile;
    const int64_t row = Divide(block, column_tiles, &column_tile) * kTile + line;
    const int64_t column = column_tile * kTile + lane;
    A sums[kRounds] = {};
    for (int64_t k0 = 0; k0 < a.columns; k0 += kTile) {
      a.Load(row - line, k0, a_tile);
      b.Load(k0, column - lane, b_tile);
      __syncthreads();
#pragma unroll 8
      for (int k = 0; k < kTile; ++k) {
#pragma unroll
        for (int i = 0; i < kRounds; ++i) sums[i] += a_tile[line + i * kLines][k] * b_tile[k][lane];
      }
      __syncthreads();
    }
    if (column >= b.columns) continue;
#pragma unroll
    for (int i = 0; i < kRounds; ++i) {
      const int64_t r = row + i * kLines;
      if (r >= a.rows) break;
      const A sum = sums[i] + bias.GetOr(column, A(0));
      C& to = c[r * b.columns + column];
      to = C(adds ? sum + static_cast<A>(Wide(to)) : sum);
    }
  }
}

void Gemm(const ops::Gemm& op, const KernelContext& ctx) {
  const int64_t tiles = ((op.rows + kTile - 1) / kTile) * ((op.columns + kTile - 1) / kTile);
  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    VisitFloat(ctx.output(0).dtype, [&]<typename C>(TypeTag<C>) {
      Launch(ctx, GemmKernel<T, C>, std::min(tiles, kMaxBlocks), kBlockThreads,
             Matrix<T>{ctx.input(0).as<const T>(), op.rows, op.inner, op.transpose_a},
             Matrix<T>{ctx.input(1).as<const T>(), op.inner, op.columns, op.transpose_b},
             InputNumbers(ctx, 2), ctx.accumulates(0), ctx.output(0).as<C>());
    });
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Gemm, Gemm);

}  // namespace
}  // namespace caffe::cuda
