// Channels-last tensors as rows of packs: a thread owns a pack of neighbouring channels, keeps
// their constants in registers, and walks down the rows with several loads in flight.
//
// MapRows() changes each element. SumRows() sums over the rows in one launch: the block that
// finishes last adds the partial sums of all blocks, in a fixed order, so that the result does not
// depend on which block was last.
#pragma once

#include <bit>
#include <memory>

#include "caffe/cuda/pack.cuh"
#include "caffe/cuda/reduce.cuh"
#include "caffe/error.hpp"

namespace caffe::cuda {

// Two blocks for each multiprocessor of an H200: one wave of kernels that hold sums and loads in
// registers. Maps need fewer registers.
inline constexpr int64_t kSumBlocks = 264, kMapBlocks = 528;
// Maximum number of packs of a row that a block covers: one per lane of a warp.
inline constexpr int kMostColumns = kWarpThreads;

// A matrix of rows of packs, cut into tiles of columns and parts of rows.
struct RowTiles {
  int64_t rows = 0;
  int packs = 0;      // in a row
  int columns = 0;    // of a block, in packs
  int tiles = 0;      // in a row
  int64_t parts = 1;  // blocks that share a tile
  int64_t block_rows = 0;

  RowTiles(int64_t rows, int64_t packs, int64_t blocks, int unrolled)
      : rows(rows),
        packs(static_cast<int>(packs)),
        columns(static_cast<int>(std::min<int64_t>(packs, kMostColumns))),
        tiles(static_cast<int>((packs + columns - 1) / columns)),
        block_rows(kBlockThreads / columns) {
    const int64_t most = (rows + block_rows * unrolled - 1) / (block_rows * unrolled);
    parts = std::clamp<int64_t>(blocks / tiles, 1, std::max<int64_t>(most, 1));
  }
  int64_t blocks() const { return tiles * parts; }

  __device__ int tile() const { return static_cast<int>(blockIdx.x) % tiles; }
  __device__ int64_t part() const { return blockIdx.x / static_cast<unsigned>(tiles); }
  __device__ int column() const { return static_cast<int>(threadIdx.x) % columns; }
  __device__ int row() const { return static_cast<int>(threadIdx.x) / columns; }
  // The thread's pack within each row that it walks.
  __device__ int pack() const { return tile() * columns + column(); }
  __device__ bool has_work() const { return row() < block_rows && pack() < packs; }
  __device__ int64_t first_row() const { return part() * block_rows + row(); }
  __device__ int64_t stride() const { return parts * block_rows; }
  // Number of rows that the thread walks.
  __device__ int count() const {
    return static_cast<int>(Divide(rows - first_row() + stride() - 1, stride()));
  }
};

enum class Walk { kDown, kUp };

// Calls use(body.Load(i), i) for the thread's pack i of each row, loading kUnrolled packs ahead.
template <int kUnrolled, typename Body, typename Use>
__device__ inline void WalkRows(const RowTiles& tiles, Walk walk, const Body& body,
                                const Use& use) {
  int64_t row = tiles.first_row(), step = tiles.stride() * tiles.packs;
  if (walk == Walk::kUp) row = tiles.rows - 1 - row, step = -step;
  int64_t at = row * tiles.packs + tiles.pack();
  int left = tiles.count();
  for (; left >= kUnrolled; left -= kUnrolled, at += kUnrolled * step) {
    decltype(body.Load(0)) loaded[kUnrolled];
#pragma unroll
    for (int u = 0; u < kUnrolled; ++u) loaded[u] = body.Load(at + u * step);
#pragma unroll
    for (int u = 0; u < kUnrolled; ++u) use(loaded[u], at + u * step);
  }
#pragma unroll 1
  for (; left > 0; --left, at += step) use(body.Load(at), at);
}

// body.Channels(pack) returns the constants that the thread keeps, body.Load(i) its operands, and
// body.Store(channels, loaded, i) writes the result. Walks upwards, because the rows that the
// previous pass read last are still in the cache.
template <int kUnrolled, typename Body>
__global__ void __launch_bounds__(kBlockThreads) MapRowsKernel(Body body, RowTiles tiles) {
  if (!tiles.has_work()) return;
  const auto channels = body.Channels(tiles.pack());
  WalkRows<kUnrolled>(tiles, Walk::kUp, body,
                      [&](const auto& loaded, int64_t i) { body.Store(channels, loaded, i); });
}

template <typename Body>
void MapRows(const KernelContext& ctx, int64_t rows, int64_t packs, const Body& body) {
  const RowTiles tiles(rows, packs, kMapBlocks, Body::kUnrolled);
  Launch(ctx, MapRowsKernel<Body::kUnrolled, Body>, tiles.blocks(), kBlockThreads, body, tiles);
}

// K sums for each of N channels.
template <int K, int N, typename A>
struct PackSums {
  A values[K][N] = {};
};

// Counts the finished blocks of each tile. The last block resets the count to 0 for the next
// launch.
class TileCounters {
 public:
  TileCounters(int64_t tiles, Device& device) {
    if (!device.is_described())
      memory_ = device.Allocate(static_cast<size_t>(tiles) * sizeof(unsigned));
  }
  unsigned* get() const { return static_cast<unsigned*>(memory_.get()); }

 private:
  std::shared_ptr<void> memory_;  // zero-initialised, as all device memory
};

// Shared memory for a block's sums: a row of the threads' values for each sum. The padding puts
// values that threads read together into different banks.
template <int K, int N, typename A>
struct SumTile {
  static constexpr int kRow = kBlockThreads + 4;
  A values[K][N][kRow];
};

// Sums over all rows of the block for channel `channel` of the tile.
template <int K, int N, typename A>
__device__ inline Sums<K, A> SumOfBlock(const SumTile<K, N, A>& tile, const RowTiles& tiles,
                                        int channel) {
  const int column = channel / N, k_of_pack = channel % N;
  Sums<K, A> sums;
  for (int row = 0; row < tiles.block_rows; ++row) {
#pragma unroll
    for (int k = 0; k < K; ++k)
      sums.values[k] += tile.values[k][k_of_pack][row * tiles.columns + column];
  }
  return sums;
}

// True if the calling block is the last of its tile; then the other blocks' writes are visible.
__device__ inline bool IsLastOfTile(const RowTiles& tiles, unsigned* counters) {
  __shared__ bool is_last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned last = static_cast<unsigned>(tiles.parts - 1);
    is_last = atomicInc(&counters[tiles.tile()], last) == last;
  }
  __syncthreads();
  if (is_last) __threadfence();
  return is_last;
}

// Loads 16 bytes written by other blocks, bypassing this multiprocessor's cache.
template <typename A>
__device__ inline Pack<A, kPackSize<A>> LoadWritten(const A* at) {
  return std::bit_cast<Pack<A, kPackSize<A>>>(__ldcg(reinterpret_cast<const uint4*>(at)));
}

// Adds the partial sums of a tile of `count` channels: groups of threads take parts in turn, a pack
// of channels each, and then a thread per channel adds the groups' sums. Loading a part from the
// shared L2 cache takes a quarter of a microsecond, so several loads are in flight.
template <int K, int N, typename A, typename Finish>
__device__ inline void FinishTile(const PartialSums<A>& partial, int64_t first, int count,
                                  SumTile<K, N, A>& tile, const Finish& finish) {
  constexpr int kWide = kPackSize<A>, kAhead = 8;
  static_assert(N % kWide == 0);
  A* const of_groups = &tile.values[0][0][0];  // [K][groups][count]
  const int columns = count / kWide, groups = kBlockThreads / columns;
  const int group = static_cast<int>(threadIdx.x) / columns;
  const int channel = static_cast<int>(threadIdx.x) % columns * kWide;
  if (group < groups) {
    PackSums<K, kWide, A> sums;
    const auto add = [&](int k, const Pack<A, kWide>& loaded) {
#pragma unroll
      for (int i = 0; i < kWide; ++i) sums.values[k][i] += loaded.values[i];
    };
    int64_t part = group;
    for (; part + (kAhead - 1) * groups < partial.parts; part += kAhead * groups) {
      Pack<A, kWide> loaded[kAhead][K];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
#pragma unroll
        for (int k = 0; k < K; ++k)
          loaded[u][k] = LoadWritten(&partial.At(k, part + u * groups, first + channel));
      }
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
#pragma unroll
        for (int k = 0; k < K; ++k) add(k, loaded[u][k]);
      }
    }
#pragma unroll 1
    for (; part < partial.parts; part += groups) {
#pragma unroll
      for (int k = 0; k < K; ++k) add(k, LoadWritten(&partial.At(k, part, first + channel)));
    }
#pragma unroll
    for (int k = 0; k < K; ++k) {
#pragma unroll
      for (int i = 0; i < kWide; ++i)
        of_groups[(k * groups + group) * count + channel + i] = sums.values[k][i];
    }
  }
  __syncthreads();
  if (static_cast<int>(threadIdx.x) >= count) return;
  Sums<K, A> sums;
  for (int i = 0; i < groups; ++i) {
#pragma unroll
    for (int k = 0; k < K; ++k) sums.values[k] += of_groups[(k * groups + i) * count + threadIdx.x];
  }
  finish(first + threadIdx.x, sums);
}

// body.Add(channels, loaded, i, sums) adds a pack to PackSums; finish(c, sums) uses a channel's
// sums.
template <int kUnrolled, int K, int N, typename A, typename Body, typename Finish>
__global__ void __launch_bounds__(kBlockThreads, 2)
    SumRowsKernel(Body body, Finish finish, RowTiles tiles, PartialSums<A> partial,
                  unsigned* counters) {
  __shared__ SumTile<K, N, A> tile;
  PackSums<K, N, A> sums;
  if (tiles.has_work()) {
    const auto channels = body.Channels(tiles.pack());
    WalkRows<kUnrolled>(tiles, Walk::kDown, body, [&](const auto& loaded, int64_t i) {
      body.Add(channels, loaded, i, sums);
    });
  }
#pragma unroll
  for (int k = 0; k < K; ++k) {
#pragma unroll
    for (int n = 0; n < N; ++n) tile.values[k][n][threadIdx.x] = sums.values[k][n];
  }
  __syncthreads();
  const int64_t first = static_cast<int64_t>(tiles.tile()) * tiles.columns * N;
  const int count =
      static_cast<int>(std::min<int64_t>(tiles.columns * N, int64_t{tiles.packs} * N - first));
  const int channel = static_cast<int>(threadIdx.x);
  if (channel < count)
    StoreSums(partial, tiles.part(), first + channel, SumOfBlock(tile, tiles, channel), finish);
  if (tiles.parts == 1 || !IsLastOfTile(tiles, counters)) return;
  FinishTile<K>(partial, first, count, tile, finish);
}

// State of SumRows() for rows of packs of N channels of A.
template <int K, int N, typename A>
class RowSums {
 public:
  static constexpr int kUnrolled = 4;

  RowSums(int64_t rows, int64_t channels, Device& device)
      : tiles_(rows, channels / N, kSumBlocks, kUnrolled), counters_(tiles_.tiles, device) {}

  size_t workspace_bytes() const {
    if (tiles_.parts == 1) return 0;
    return static_cast<size_t>(K * tiles_.parts * tiles_.packs * N) * sizeof(A);
  }
  template <typename Body, typename Finish>
  void Run(const KernelContext& ctx, void* workspace, const Body& body,
           const Finish& finish) const {
    if (!IsPackAligned<A, kPackSize<A>>(static_cast<const A*>(workspace)))
      throw InternalError("cuda: sums over rows in memory that is not aligned");
    const PartialSums<A> partial{static_cast<A*>(workspace), tiles_.parts,
                                 int64_t{tiles_.packs} * N};
    Launch(ctx, SumRowsKernel<Body::kUnrolled, K, N, A, Body, Finish>, tiles_.blocks(),
           kBlockThreads, body, finish, tiles_, partial, counters_.get());
  }

 private:
  RowTiles tiles_;
  TileCounters counters_;
};

}  // namespace caffe::cuda
