// Matrix transposition through tiles, so that both reads and writes are coalesced.
#pragma once

#include "caffe/cuda/launch.cuh"

namespace caffe::cuda {

inline constexpr int kTransposeTile = 32;

// y = or += the transposes of `items` matrices of rows x columns: y[c][r] = store(x[r][c]). A
// padding column puts a tile's columns into different banks.
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

// Matrices up to this width would leave tiles almost empty.
inline constexpr int64_t kNarrow = kTransposeTile / 4;

// Like TransposeKernel(), for narrow matrices: a thread per position along their long side, so that
// accesses along that side are coalesced and those along the other one are strided.
template <typename From, typename To, typename Store>
__global__ void __launch_bounds__(kBlockThreads)
    TransposeNarrowKernel(Store store, const From* x, int64_t items, int64_t rows, int64_t columns,
                          To* y) {
  const bool has_few_rows = rows < columns;
  const int64_t places = has_few_rows ? columns : rows, few = has_few_rows ? rows : columns;
  // Distance between elements along the short side, then along the long side.
  const int64_t from_step = has_few_rows ? columns : 1, to_step = has_few_rows ? 1 : rows;
  const int64_t from_place = has_few_rows ? 1 : columns, to_place = has_few_rows ? rows : 1;
  for (int64_t i = GlobalThread(); i < items * places; i += GridThreads()) {
    int64_t place;
    const int64_t offset = Divide(i, places, &place) * rows * columns;
    const From* from = x + offset + place * from_place;
    To* to = y + offset + place * to_place;
    From values[kNarrow];
#pragma unroll
    for (int k = 0; k < kNarrow; ++k)
      if (k < few) values[k] = from[k * from_step];
#pragma unroll
    for (int k = 0; k < kNarrow; ++k)
      if (k < few) store(values[k], to[k * to_step]);
  }
}

template <typename From, typename To, typename Store>
void Transpose(const KernelContext& ctx, const Store& store, const From* x, int64_t items,
               int64_t rows, int64_t columns, To* y) {
  if (std::min(rows, columns) <= kNarrow) {
    const int64_t places = items * std::max(rows, columns);
    Launch(ctx, TransposeNarrowKernel<From, To, Store>, BlocksFor(places), kBlockThreads, store, x,
           items, rows, columns, y);
    return;
  }
  constexpr int kTile = kTransposeTile;
  const int64_t tiles = items * ((rows + kTile - 1) / kTile) * ((columns + kTile - 1) / kTile);
  Launch(ctx, TransposeKernel<From, To, Store>, std::min(tiles, kMaxBlocks), kBlockThreads, store,
         x, items, rows, columns, y);
}

}  // namespace caffe::cuda
