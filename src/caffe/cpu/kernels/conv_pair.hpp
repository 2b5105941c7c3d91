// Common parts of the kernels of a 1x1 convolution followed by a depthwise one, as in each block of
// MobileNets (Sandler et al. 2018, "MobileNetV2: Inverted Residuals and Linear Bottlenecks"). The
// intermediate image has several times as many channels as the input. Therefore a few of its
// channels are computed at a time, for as many rows as the windows span, and stay in the
// first-level cache. Images are channels-last.
#pragma once

#include <omp.h>

#include <algorithm>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "caffe/core/cache_lines.hpp"
#include "caffe/cpu/kernels/conv_descs.hpp"
#include "caffe/cpu/kernels/pixel_sums.hpp"
#include "caffe/cpu/kernels/tile_products.hpp"
#include "caffe/cpu/kernels/weight_panels.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/cpu/processor.hpp"
#include "caffe/ops/fused.hpp"
#include "caffe/ops/kernel.hpp"

#ifdef CAFFE_HAS_PIXEL_SUMS
namespace caffe::cpu {

// The region Conv(x, w, bias), Conv(w', bias').
struct ConvPair {
  enum Input { kX, kW, kBias };
  ops::Conv first, second;
  int second_w, second_bias;  // a bias of -1 is absent
  TensorDesc between;

  ConvPair(const ops::Fused& region, std::span<const OperandDesc> inputs)
      : first(region.Get<ops::Conv>(0)),
        second(region.Get<ops::Conv>(1)),
        second_w(region.InputOf(1, ops::Conv::kW)),
        second_bias(region.InputOf(1, ops::Conv::kBias)),
        between(region.InnerDescs(std::vector<TensorDesc>(inputs.begin(), inputs.end()), {})[0]) {}
};

inline constexpr int kWindow = 3;  // both extents of the depthwise windows
inline constexpr int kWindowTaps = kWindow * kWindow;
inline constexpr int kWindows = 7;  // windows of a row that are computed together

// The fewest pixels of an image with which the pair is at least as fast as both convolutions.
inline constexpr int64_t kFewestPixels = 25;
// The most bytes of the rows that a thread keeps.
inline constexpr int64_t kMostRingBytes = 1 << 20;

struct PairSizes {
  int64_t channels, hidden, height, width, rows, columns, stride, pad_y, pad_x;
  int64_t units;  // units of 4 bytes in a pixel of x
  int64_t items, threads, blocks, bands;
  bool is_signed;                // 8-bit numbers
  std::optional<TileCut> tiles;  // of a row of x, if tiles multiply it

  PairSizes(const ConvPair& op, const TensorDesc& x, const Shape& y)
      : channels(x.shape[1]),
        hidden(y[1]),
        height(x.shape[2]),
        width(x.shape[3]),
        rows(y[2]),
        columns(y[3]),
        stride(op.second.geometry.stride[0]),
        pad_y(op.second.geometry.pad[0]),
        pad_x(op.second.geometry.pad[1]),
        units(channels * static_cast<int64_t>(SizeOf(x.dtype)) / kUnitBytes),
        items(x.shape[0]),
        threads(omp_get_max_threads()),
        blocks(BlocksOf(hidden)),
        is_signed(x.dtype == DType::kInt8) {
    const TileCut cut(width, units);
    if (x.dtype != DType::kFloat && MayMultiplyTiles() && !cut.is_wasteful()) tiles = cut;
    const int64_t most = std::min(threads, rows);
    bands = 1;
    for (int64_t other = 2; other <= most; ++other) {
      if (RowsWith(other) < RowsWith(bands)) bands = other;
    }
  }

  // Rows of the intermediate image that the busiest thread computes if images have so many bands.
  // Each band also computes the rows next to it, which its neighbours compute, too.
  int64_t RowsWith(int64_t bands) const {
    const int64_t tasks = (items * blocks * bands + threads - 1) / threads;
    const int64_t rows_of_band = (rows + bands - 1) / bands;
    return tasks * ((rows_of_band - 1) * stride + kWindow);
  }
  int64_t tasks() const { return items * blocks * bands; }
  // Columns of a row of the intermediate image, including all columns that a row's last windows
  // read.
  int64_t padded_width() const {
    const int64_t made = (columns + kWindows - 1) / kWindows * kWindows;
    return std::max(width + 2 * pad_x, (made - 1) * stride + kWindow);
  }
  int64_t row_numbers() const { return padded_width() * kBlock; }
  int64_t channels_from(int64_t channel) const { return std::min(kBlock, hidden - channel); }
  WeightPanels panels() const {
    return {hidden, channels, 1, units * kUnitBytes / channels, 0, is_signed && !tiles};
  }
};

// A task: some rows of a block of channels of an image.
struct PairTask {
  int64_t item, channel, first_row, last_row;

  PairTask(const PairSizes& s, int64_t number)
      : item(number / (s.blocks * s.bands)),
        channel(number / s.bands % s.blocks * kBlock),
        first_row(s.rows * (number % s.bands) / s.bands),
        last_row(s.rows * (number % s.bands + 1) / s.bands) {}
};

// Sizes of the workspace: a Block, which all images share, for each block of channels; then what
// each thread needs.
template <typename Block>
struct PairWorkspace {
  size_t block_bytes, thread_bytes, bytes;

  PairWorkspace(const PairSizes& s, int64_t thread_bytes)
      : block_bytes(
            static_cast<size_t>(WholeLines(s.blocks * static_cast<int64_t>(sizeof(Block))))),
        thread_bytes(static_cast<size_t>(WholeLines(thread_bytes))),
        bytes(block_bytes + static_cast<size_t>(s.threads) * this->thread_bytes) {}
};

// Computes a row of the intermediate image for a block of channels.
template <int kVectors, typename X, typename End, typename Row>
void SumPixelRow(TypeTag<X> type, const PairSizes& s, const char* pixels, const char* panel,
                 const End& end, const Row& y) {
  const PixelRow x = {pixels, s.width, s.units};
  if constexpr (!std::is_same_v<X, float>) {
    if (s.tiles) return SumRowByTiles<kVectors>(type, x, *s.tiles, panel, end, y);
  }
  SumRow<kVectors>(type, x, panel, end, y);
}

// Makes the blocks, and computes all tasks: run(vectors, task, block, memory) computes one, for
// `vectors` vectors of channels, with a thread's part of the workspace.
template <typename Block, typename Run>
void RunPair(const ConvPair& op, const PairSizes& s, const PairWorkspace<Block>& workspace,
             const KernelContext& ctx, const Run& run) {
  static_assert(std::is_trivially_destructible_v<Block>);
  auto* const blocks = static_cast<Block*>(ctx.workspace);
  ParallelFor(s.blocks, kPointwiseGrain / (kBlock * kWindowTaps), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) new (blocks + i) Block(op, s, ctx, i * kBlock);
  });
  char* const of_threads = static_cast<char*>(ctx.workspace) + workspace.block_bytes;
  ParallelFor(s.threads, 1, [&](int64_t begin, int64_t end) {
    std::optional<TilesInUse> tiles;
    if (s.tiles) tiles.emplace(*s.tiles);
    for (int64_t thread = begin; thread < end; ++thread) {
      char* const memory = of_threads + static_cast<size_t>(thread) * workspace.thread_bytes;
      const int64_t last = s.tasks() * (thread + 1) / s.threads;
      for (int64_t number = s.tasks() * thread / s.threads; number < last; ++number) {
        const PairTask task(s, number);
        const Block& block = blocks[task.channel / kBlock];
        if (s.hidden - task.channel >= kBlock) {
          run(std::integral_constant<int, kBlockVectors>{}, task, block, memory);
        } else {
          run(std::integral_constant<int, 1>{}, task, block, memory);
        }
      }
    }
  });
}

// Why the kernels cannot compute the pair; empty: they can.
inline std::string WhyNotPair(const ConvPair& op, std::span<const OperandDesc> inputs) {
  const OperandDesc &x = inputs[ConvPair::kX], &second_w = inputs[op.second_w];
  const ops::ConvGeometry &first = op.first.geometry, &second = op.second.geometry;
  const int64_t channels = second_w.shape[0];
  if (first.spatial_axes() != 2 || first.group != 1 || !AreAll(first.kernel, 1) ||
      !AreAll(first.stride, 1) || !AreAll(first.pad, 0)) {
    return "only windows of 1x1 without strides, padding and groups come first";
  }
  if (second.group != channels || second.spatial_axes() != 2 ||
      second_w.shape != Shape({channels, 1, kWindow, kWindow}) || !AreAll(second.dilation, 1) ||
      second.stride[0] != second.stride[1] || second.stride[0] > 2) {
    return "only depthwise windows of 3x3 with a stride of 1 or 2 come second";
  }
  if (x.layout != Layout::kChannelsLast) return "only images with channels last";
  if (channels % kFloatLanes != 0) return "only channels in multiples of 16";
  if (x.shape[1] * static_cast<int64_t>(SizeOf(x.dtype)) % kUnitBytes != 0)
    return "pixels that are not a multiple of 4 bytes";
  if (x.count() == 0) return "an empty batch";
  if (x.shape[2] * x.shape[3] < kFewestPixels) return "images of few pixels, whose rows are short";
  const int64_t width = x.shape[3] + 2 * second.pad[1];
  if (kWindow * width * kBlock * static_cast<int64_t>(sizeof(float)) > kMostRingBytes)
    return "rows that do not fit the second-level cache";
  if (!HasWideVectors()) return "this processor has no AVX-512";
  const std::optional<Refusal> large = RefuseLarge(second, op.between.shape);
  return large ? large->reason : "";
}

inline bool IsConvPair(const Op& op) {
  return op.As<ops::Fused>()->Is({ops::Conv::kName, ops::Conv::kName});
}

template <std::string (*kWhyNot)(const ConvPair&, std::span<const OperandDesc>)>
KernelTraits PairTraits(KernelTraits traits) {
  traits.is_for = IsConvPair;
  traits.why_not = [](const Op& op, std::span<const OperandDesc> inputs, const Device&) {
    return kWhyNot(ConvPair(*op.As<ops::Fused>(), inputs), inputs);
  };
  return traits;
}

}  // namespace caffe::cpu
#endif
