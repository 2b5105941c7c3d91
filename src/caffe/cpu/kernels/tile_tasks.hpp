// Runs the tasks of a convolution by products of tiles.
#pragma once

#include <array>
#include <new>

#include "caffe/core/cache_lines.hpp"
#include "caffe/cpu/kernels/block_ends.hpp"
#include "caffe/cpu/kernels/tile_products.hpp"
#include "caffe/cpu/kernels/tile_sizes.hpp"
#include "caffe/cpu/kernels/weight_panels.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/cpu/workspace_layout.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/fused.hpp"
#include "caffe/ops/kernel.hpp"

#ifdef CAFFE_HAS_PIXEL_SUMS
namespace caffe::cpu {

inline constexpr int64_t kMostTileRuns = 64;
inline constexpr int64_t kFarAhead = 2;  // steps; for weights in memory

// A tile of pixels.
struct PixelTile {
  const char* from;        // what the first pixel's window reads
  int64_t pixel, skipped;  // the first result, over all images; results of the tile before it
};

// Runs one thread's tasks.
template <typename Product, typename Channels, typename Y>
class TileTasks {
 public:
  // `channels`: of each block; `copy`: memory for copied rows.
  TileTasks(const ops::Conv& op, const TileSizes& sizes, const KernelContext& ctx,
            const Channels* channels, char* copy)
      : s_(sizes),
        ctx_(ctx),
        channels_(channels),
        x_(ctx.input(ops::Conv::kX).as<const char>()),
        copy_(copy) {
    const int added = ops::AddedOperand(op.epilogue);
    if (added >= 0) added_ = ctx.input(added).as<const typename Channels::Added>();
    for (int64_t run = 0; run < s_.runs(); ++run) {
      runs_[static_cast<size_t>(run)] = run / s_.runs_of_row() * s_.gap_y * s_.row_bytes() +
                                        run % s_.runs_of_row() * s_.gap_x * s_.pixel_bytes;
    }
    reads_ = {runs_.data(), s_.runs(), s_.cut.steps, s_.cut.units, s_.stride_x * s_.pixel_bytes,
              kFarAhead};
  }

  // Groups are outermost, so that a thread keeps its weights.
  void Run(int64_t task, int64_t last) {
    const TilesInUse tiles(s_.cut);
    for (; task < last; ++task) {
      const int64_t group = task / s_.chunks, chunk = task % s_.chunks;
      const int64_t first = s_.FirstTile(chunk), next = s_.FirstTile(chunk + 1);
      if (s_.is_copied) CopyChunk(first / s_.cut.tiles, next / s_.cut.tiles);
      RunChunk(first, next, s_.blocks * group / s_.groups, s_.blocks * (group + 1) / s_.groups);
    }
  }

 private:
  // Copies what some lines of an image, or all of some images, read.
  void CopyChunk(int64_t line, int64_t last) {
    first_item_ = line / s_.rows, first_row_ = line % s_.rows;
    char* to = copy_;
    for (; line < last; line = (line / s_.rows + 1) * s_.rows, to += s_.item_step()) {
      const int64_t row = line % s_.rows, count = std::min(last - line, s_.rows - row);
      CopyPaddedRows(s_, x_ + line / s_.rows * s_.item_bytes(), row * s_.stride_y - s_.pad_y,
                     s_.RowsOf(count), to);
    }
  }
  PixelTile At(int64_t tile) const {
    const int64_t line = tile / s_.cut.tiles;
    const int64_t first = s_.cut.FirstOf(tile % s_.cut.tiles, s_.length);
    const int64_t item = line / s_.rows - first_item_, row = line % s_.rows - first_row_;
    return {(s_.is_copied ? copy_ : x_) + item * s_.item_step() +
                row * s_.stride_y * s_.row_bytes() + first * reads_.pixel_step,
            line * s_.length + first, tile % s_.cut.tiles * s_.cut.rows - first};
  }

  void RunChunk(int64_t tile, int64_t last, int64_t block, int64_t last_block) {
    if (!s_.is_weights_last && last_block > block + 1) {
      for (; block < last_block; ++block) {
        reads_.steps_ahead = kFarAhead;
        RunChunk(tile, last, block, block + 1);
      }
      return;
    }
    const auto compute = [&](auto tiles) {
      for (; tile + tiles <= last; tile += tiles) {
        std::array<PixelTile, kTileGroup> group = {};
        for (int i = 0; i < tiles; ++i) group[i] = At(tile + i);
        for (int64_t b = block; b < last_block; ++b) Compute<tiles>(group, b);
        reads_.steps_ahead = 1;  // the weights are in a cache now
      }
    };
    compute(std::integral_constant<int, kTileGroup>{});
    compute(std::integral_constant<int, kTilePair>{});
    compute(std::integral_constant<int, 1>{});
  }
  template <int kTiles>
  void Compute(const std::array<PixelTile, kTileGroup>& tiles, int64_t block) {
    const int64_t lanes = std::min(kBlock, s_.outputs - block * kBlock);
    if (lanes > kFloatLanes) {
      ComputeTiles<kTiles, kBlockVectors>(tiles, block, lanes);
    } else {
      ComputeTiles<kTiles, 1>(tiles, block, lanes);
    }
  }
  template <int kTiles, int kVectors>
  CAFFE_WIDE_VECTORS void ComputeTiles(const std::array<PixelTile, kTileGroup>& tiles,
                                       int64_t block, int64_t lanes) {
    const Channels& channels = channels_[block];
    const char* const panel =
        ctx_.input(ops::Conv::kW).as<const char>() + block * s_.panels().panel_bytes();
    FloatVector sums[kTileGroup * kTileRows * kBlockVectors];
    std::array<const char*, kTileGroup> pixels;
    for (int i = 0; i < kTileGroup; ++i) pixels[i] = tiles[i].from;
    SumTiles<Product, kTiles, kVectors>(reads_, pixels, panel, channels.begins, s_.cut.rows, sums);
    Unroll<kTiles>([&](auto i) CAFFE_FORCE_INLINE {
      const PixelTile& tile = tiles[i];
      const int64_t at = (tile.pixel + tile.skipped) * s_.whole + s_.offset + block * kBlock;
      FinishTile<typename Product::Sums>(sums + (i * s_.cut.rows + tile.skipped) * kBlockVectors,
                                         s_.cut.rows - tile.skipped, lanes, channels.end,
                                         added_ == nullptr ? nullptr : added_ + at, s_.whole,
                                         ctx_.output(0).as<Y>() + at);
    });
  }

  const TileSizes& s_;
  const KernelContext& ctx_;
  const Channels* channels_;
  const char* x_;
  char* copy_;
  const typename Channels::Added* added_ = nullptr;
  std::array<int64_t, kMostTileRuns> runs_ = {};
  TileReads reads_ = {};
  int64_t first_item_ = 0, first_row_ = 0;  // of the copies
};

// Offsets in the workspace: the Channels of all blocks, and each thread's copies.
struct TileWorkspace {
  size_t channels, copies, copy_bytes, bytes;

  TileWorkspace(const TileSizes& s, size_t channels_bytes) {
    WorkspaceLayout layout;
    channels = layout.Add(static_cast<size_t>(s.blocks) * channels_bytes);
    copy_bytes = static_cast<size_t>(WholeLines(s.copy_bytes()));
    copies = layout.Add(static_cast<size_t>(s.threads) * copy_bytes);
    bytes = layout.bytes();
  }
};

template <typename Product, typename Channels, typename Y>
void RunTiles(const ops::Conv& op, const TileSizes& s, const TileWorkspace& at,
              const KernelContext& ctx) {
  char* const workspace = static_cast<char*>(ctx.workspace);
  auto* const channels = reinterpret_cast<Channels*>(workspace + at.channels);
  const WeightPanels panels = s.panels();
  for (int64_t i = 0; i < s.blocks; ++i) {
    new (channels + i)
        Channels(op, panels, ctx, i * kBlock, std::min(kBlock, s.outputs - i * kBlock));
  }
  ParallelFor(s.threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t thread = begin; thread < end; ++thread) {
      char* const copy = workspace + at.copies + static_cast<size_t>(thread) * at.copy_bytes;
      TileTasks<Product, Channels, Y>(op, s, ctx, channels, copy)
          .Run(s.tasks() * thread / s.threads, s.tasks() * (thread + 1) / s.threads);
    }
  });
}

template <typename Product, typename Channels, typename Y>
Kernel TileKernel(const ops::Conv& op, const KernelRequest& request, const TileSizes& sizes,
                  PackedOperand weights) {
  Kernel kernel;
  const TileWorkspace workspace(sizes, sizeof(Channels));
  kernel.run = [op, sizes, workspace](const KernelContext& ctx) {
    RunTiles<Product, Channels, Y>(op, sizes, workspace, ctx);
  };
  kernel.workspace_bytes = workspace.bytes;
  kernel.packed_weights = std::move(weights);
  const int added = ops::AddedOperand(op.epilogue);
  if (added >= 0 && request.inputs[added].is_last_read &&
      request.inputs[added].bytes() == request.outputs[0].bytes()) {
    kernel.replaced_input = added;
  }
  return kernel;
}

}  // namespace caffe::cpu
#endif
