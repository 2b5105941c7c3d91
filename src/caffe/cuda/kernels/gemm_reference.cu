// Matrix products of any types, by tiles in shared memory. Used if cuBLASLt refuses.
#include "caffe/cuda/launch.cuh"
#include "caffe/cuda/numbers.cuh"
#include "caffe/ops/gemm.hpp"

namespace caffe::cuda {
namespace {

// Rows, columns and depth of a tile; a block's threads cover 8 of 32 lines at a time.
constexpr int kTile = 32, kLines = kBlockThreads / kTile, kRounds = kTile / kLines;

// A row-major matrix, or one whose transpose is row-major.
template <typename T>
struct Matrix {
  const T* data;
  int64_t rows, columns;
  bool is_transposed;

  // Loads the tile at (r0, c0), with zeros beyond the matrix. A padding column puts a tile's
  // columns into different banks.
  __device__ void Load(int64_t r0, int64_t c0, Accum<T> (&tile)[kTile][kTile + 1]) const {
    const int lane = threadIdx.x % kTile;
#pragma unroll
    for (int i = 0; i < kRounds; ++i) {
      const int line = threadIdx.x / kTile + i * kLines;
      // Lanes follow contiguous memory.
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

// One product; the operands begin a, b and c matrices after those of the op.
template <typename Product>
void Multiply(const Product& op, const KernelContext& ctx, const ops::MatrixPair& pair,
              const Numbers& bias) {
  const int64_t tiles = ((op.rows + kTile - 1) / kTile) * ((op.columns + kTile - 1) / kTile);
  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    VisitFloat(ctx.output(0).dtype, [&]<typename C>(TypeTag<C>) {
      const T* a = ctx.input(0).as<const T>() + pair.a * op.rows * op.inner;
      const T* b = ctx.input(1).as<const T>() + pair.b * op.inner * op.columns;
      Launch(ctx, GemmKernel<T, C>, std::min(tiles, kMaxBlocks), kBlockThreads,
             Matrix<T>{a, op.rows, op.inner, op.transpose_a},
             Matrix<T>{b, op.inner, op.columns, op.transpose_b}, bias,
             pair.adds || ctx.accumulates(0),
             ctx.output(0).as<C>() + pair.c * op.rows * op.columns);
    });
  });
}

void Gemm(const ops::Gemm& op, const KernelContext& ctx) {
  Multiply(op, ctx, {}, InputNumbers(ctx, 2));
}

void BatchedGemm(const ops::BatchedGemm& op, const KernelContext& ctx) {
  for (int64_t place = 0; place < op.items(); ++place)
    Multiply(op, ctx, PairAt(op, 0, op.batch.size(), place), Numbers{});
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::BatchedGemm, BatchedGemm);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Gemm, Gemm);

}  // namespace
}  // namespace caffe::cuda
