// Matrices turned around, through tiles, so that reads and writes both go along memory.
#pragma once

#include "caffe/cuda/launch.cuh"

namespace caffe::cuda {

inline constexpr int kTransposeTile = 32;

// y = or += the transposes of `items` matrices of rows x columns: y[c][r] = store(x[r][c]). One
// column of padding keeps a tile's columns in different banks.
template <typename From, typename To, typename Store>
__global__ void __launch_bounds__(kBlockThreads)
    TransposeKernel(Store store, const From* x, int64_t items, int64_t rows, int64_t columns,
                    To* y) {
  constexpr int kTile = kTransposeTile;
  __shared__ From tile[kTile][kTile + 1];
  const int lane = threadIdx.x % kTile, warp = threadIdx.x / kTile,
            warps = static_cast<int>(blockDim.x) / kTile;
  const int64_t row_tiles = (rows + kTile - 1) / kTile,
                column_tiles = (columns + kTile - 1) / kTile;
  for (int64_t block = blockIdx.x; block < items * row_tiles * column_tiles; block += gridDim.x) {
    int64_t column_tile, row_tile;
    const int64_t item = Divide(Divide(block, column_tiles, &column_tile), row_tiles, &row_tile);
    const int64_t r0 = row_tile * kTile, c0 = column_tile * kTile, offset = item * rows * columns;
    for (int i = warp; i < kTile; i += warps) {
      if (r0 + i < rows && c0 + lane < columns) {
        tile[i][lane] = x[offset + (r0 + i) * columns + c0 + lane];
      }
    }
    __syncthreads();
    for (int i = warp; i < kTile; i += warps) {
      if (c0 + i < columns && r0 + lane < rows) {
        store(tile[lane][i], y[offset + (c0 + i) * rows + r0 + lane]);
      }
    }
    __syncthreads();
  }
}

template <typename From, typename To, typename Store>
void Transpose(const KernelContext& ctx, const Store& store, const From* x, int64_t items,
               int64_t rows, int64_t columns, To* y) {
  constexpr int kTile = kTransposeTile;
  const int64_t tiles = items * ((rows + kTile - 1) / kTile) * ((columns + kTile - 1) / kTile);
  Launch(ctx, TransposeKernel<From, To, Store>, std::min(tiles, kMaxBlocks), kBlockThreads, store,
         x, items, rows, columns, y);
}

}  // namespace caffe::cuda
