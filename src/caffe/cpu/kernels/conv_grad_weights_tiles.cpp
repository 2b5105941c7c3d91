// Gradients of the weights of convolutions in bfloat16 as products of tiles (AMX): for each tap,
// the gradients of the results times the pixels that the tap reads. Pixels are the summands, so
// both images are rearranged, a part that fits the second-level cache at a time. The rows of an
// image are laid end to end, so that a tap's pixels are at one distance from all results; results
// are followed by zeros where a row of pixels is longer. An infinite or undefined pixel may
// therefore reach the gradients of taps that do not read it.
#include <omp.h>

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "caffe/cpu/kernels/column_sums.hpp"
#include "caffe/cpu/kernels/conv_descs.hpp"
#include "caffe/cpu/kernels/tile_products.hpp"
#include "caffe/cpu/kernels/vector_tile.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/cpu/workspace_layout.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/kernel.hpp"

#ifdef CAFFE_HAS_PIXEL_SUMS
namespace caffe::cpu::gradient_tiles {
namespace {

using Grad = ops::ConvGradWeights;

constexpr int64_t kStepPixels = 32;  // summands of a product
constexpr int64_t kStepPairs = kStepPixels / 2;
constexpr int64_t kSumsOfBlock = kBlock * kBlock;
// Bytes of a part of both images, rearranged.
constexpr int64_t kPartBytes = 1 << 20;

// A band is some rows of an image's results. Bands of 1x1 windows go through all images as if they
// were one. A part is one band, or several images.
struct Sizes {
  ops::ConvGeometry geometry;
  int64_t items, channels, height, width;  // of x
  int64_t outputs, rows, columns;          // of dy
  bool is_flat;                            // windows are pixels inside of the image
  int64_t pitch;                           // positions from row to row
  int64_t reach;                           // positions from a window's first pixel to its last
  int64_t threads, taps, output_blocks, channel_blocks;
  int64_t versions = 1;  // of x: with pairs from even and from odd positions
  int64_t bands = 1, pieces_of_part = 1, steps = 0;

  Sizes(const ops::ConvGeometry& g, const Shape& x, const Shape& y)
      : geometry(g),
        items(x[0]),
        channels(x[1]),
        height(x[2]),
        width(x[3]),
        outputs(y[1]),
        rows(y[2]),
        columns(y[3]),
        is_flat(AreAll(g.kernel, 1) && AreAll(g.pad, 0)),
        pitch(is_flat ? columns : columns + g.Span(1) - 1),
        reach((g.Span(0) - 1) * pitch + g.Span(1) - 1),
        threads(omp_get_max_threads()),
        taps(g.kernel[0] * g.kernel[1]),
        output_blocks(BlocksOf(outputs)),
        channel_blocks(BlocksOf(channels)) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      if (Offset(tap) % 2 != 0) versions = 2;
    }
    const int64_t step_bytes = kStepPixels * kBlock * static_cast<int64_t>(sizeof(bfloat16)) *
                               (output_blocks + versions * channel_blocks);
    const int64_t most = std::max<int64_t>(1, kPartBytes / step_bytes);  // steps of a part
    bands = std::min(all_rows(), (StepsOf(all_rows()) + most - 1) / most);
    steps = StepsOf(most_rows());
    if (bands == 1) pieces_of_part = std::clamp<int64_t>(most / steps_of_pixels(), 1, images());
  }

  int64_t images() const { return is_flat ? 1 : items; }
  int64_t all_rows() const { return is_flat ? items * rows : rows; }  // of results of an image
  int64_t most_rows() const { return (all_rows() + bands - 1) / bands; }
  int64_t FirstRow(int64_t band) const { return all_rows() * band / bands; }
  int64_t StepsOf(int64_t count) const { return (count * pitch + kStepPixels - 1) / kStepPixels; }
  int64_t steps_of_pixels() const { return steps + (reach + kStepPixels - 1) / kStepPixels; }
  int64_t pieces() const { return images() * bands; }
  int64_t tasks() const { return output_blocks * channel_blocks * taps; }
  // The distance from a result's position to that of the pixel that a tap reads.
  int64_t Offset(int64_t tap) const {
    const int64_t y = tap / geometry.kernel[1], x = tap % geometry.kernel[1];
    return y * geometry.dilation[0] * pitch + x * geometry.dilation[1];
  }
  // Bytes from channel to channel of the rearranged results: an odd number of cache lines, so that
  // they do not compete for the same places of the cache.
  int64_t result_step() const { return (pieces_of_part * steps | 1) * kTileRowBytes; }
  int64_t result_bytes() const { return output_blocks * kBlock * result_step(); }
  // Bytes of a version of a block of channels of the rearranged pixels.
  int64_t pixel_block_bytes() const {
    return pieces_of_part * steps_of_pixels() * kStepPairs * kBlock * kUnitBytes;
  }
  int64_t pixel_bytes() const { return channel_blocks * versions * pixel_block_bytes(); }
};

// Both images where they are. Positions count from the first row of a piece.
struct Images {
  const Sizes& s;
  const bfloat16 *x, *dy;
  const bfloat16* zeros;  // stand for positions without a result or a pixel

  // The first result of a row; null: the piece has no such row.
  const bfloat16* ResultRow(int64_t piece, int64_t row) const {
    row += s.FirstRow(piece % s.bands);
    if (row >= s.FirstRow(piece % s.bands + 1)) return nullptr;
    return dy + (piece / s.bands * s.rows + row) * s.columns * s.outputs;
  }
  const bfloat16* PixelRow(int64_t piece, int64_t row) const {
    int64_t image = piece / s.bands;
    row += s.FirstRow(piece % s.bands);
    if (s.is_flat) {
      if (row >= s.all_rows()) return nullptr;
      image = row / s.rows, row = row % s.rows * s.geometry.stride[0];
    } else {
      row -= s.geometry.pad[0];
      if (row < 0 || row >= s.height) return nullptr;
    }
    return x + (image * s.height + row) * s.width * s.channels;
  }
};

// Finds the data of kCount positions. row(r): the first pixel of a row, or null; its pixels are
// those of the columns from `first` to `last`, `step` apart.
template <size_t kCount, typename Row>
void FindPositions(int64_t position, int64_t pitch, int64_t first, int64_t last, int64_t step,
                   const bfloat16* zeros, const Row& row_of,
                   std::array<const bfloat16*, kCount>& found) {
  int64_t row = position / pitch, column = position % pitch;
  const bfloat16* from = row_of(row);
  for (const bfloat16*& one : found) {
    const bool is_inside = from != nullptr && column >= first && column < last;
    one = is_inside ? from + (column - first) * step : zeros;
    if (++column < pitch) continue;
    column = 0;
    from = row_of(++row);
  }
}

// Loads up to kFloatLanes channels of two pixels, as pairs.
template <typename Lanes>
CAFFE_FORCE_INLINE inline void LoadPairs(const bfloat16* first, const bfloat16* second, Lanes lanes,
                                         FloatVector& to) {
  HalfBits low = {}, high = {};
  const size_t bytes = static_cast<size_t>(lanes) * sizeof(bfloat16);
  std::memcpy(&low, first, bytes);
  std::memcpy(&high, second, bytes);
  const auto pairs =
      __builtin_shufflevector(low, high, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8,
                              24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  std::memcpy(&to, &pairs, sizeof(to));
}

// Calls fn(first channel, lanes) for vectors of whole blocks: without lanes beyond the channels.
template <typename Fn>
CAFFE_FORCE_INLINE inline void ForBlockVectors(int64_t channels, const Fn& fn) {
  ForVectors(channels, fn);
  for (int64_t c = (channels + kFloatLanes - 1) / kFloatLanes * kFloatLanes;
       c < BlocksOf(channels) * kBlock; c += kFloatLanes) {
    fn(c, std::integral_constant<int64_t, 0>{});
  }
}

// Rearranges the results of a step: a channel's are next to each other.
CAFFE_WIDE_VECTORS void ArrangeResults(const std::array<const bfloat16*, kStepPixels>& from,
                                       int64_t channels, int64_t step, char* to) {
  ForBlockVectors(channels, [&](int64_t c, auto lanes) CAFFE_FORCE_INLINE {
    VectorTile tile;
    Unroll<kFloatLanes>([&](auto i) CAFFE_FORCE_INLINE {
      LoadPairs(from[2 * i] + c, from[2 * i + 1] + c, lanes, tile.rows[i]);
    });
    tile.Transpose();
    tile.Store(to + c * step, step);
  });
}

// Rearranges the pixels of a step: pairs of pixels of all channels of a block alternate.
CAFFE_WIDE_VECTORS void ArrangePixels(const bfloat16* const* from, int64_t channels,
                                      int64_t block_step, char* to) {
  ForBlockVectors(channels, [&](int64_t c, auto lanes) CAFFE_FORCE_INLINE {
    char* const row = to + c / kBlock * block_step + c % kBlock * kUnitBytes;
    for (int64_t pair = 0; pair < kStepPairs; ++pair) {
      FloatVector units;
      LoadPairs(from[2 * pair] + c, from[2 * pair + 1] + c, lanes, units);
      std::memcpy(row + pair * kBlock * kUnitBytes, &units, sizeof(units));
    }
  });
}

// The products of a part for a tap and a block of both kinds of channels.
struct PartProduct {
  const char *results, *pixels;  // of the first piece
  int64_t result_step;
  int64_t pieces, steps, piece_pixel_bytes;
};
void AddPart(const PartProduct& part, const float* begins, float* sums) {
  constexpr int kLeft = TilesInUse::kPixels, kRight = TilesInUse::kWeights;
  constexpr int64_t kSumStep = kBlock * static_cast<int64_t>(sizeof(float));
  constexpr int64_t kStepBytes = kStepPairs * kBlock * kUnitBytes;
  const auto for_each = [](const auto& fn) CAFFE_FORCE_INLINE {
    Unroll<kTilePair>([&](auto tile) CAFFE_FORCE_INLINE {
      Unroll<kBlockVectors>([&](auto v) CAFFE_FORCE_INLINE { fn(tile, v); });
    });
  };
  const auto at = [&](int tile, int v) {
    return sums + tile * kTileRows * kBlock + v * kFloatLanes;
  };
  for_each([&](auto tile, auto v) CAFFE_FORCE_INLINE {
    constexpr int kSum = tile * kBlockVectors + v;
    begins != nullptr ? LoadTile<kSum>(begins, 0) : LoadTile<kSum>(at(tile, v), kSumStep);
  });
  const char* left = part.results;
  for (int64_t piece = 0; piece < part.pieces; ++piece) {
    const char* right = part.pixels + piece * part.piece_pixel_bytes;
    for (int64_t step = 0; step < part.steps; ++step) {
      LoadTile<kLeft>(left, part.result_step);
      LoadTile<kLeft + 1>(left + kTileRows * part.result_step, part.result_step);
      LoadTile<kRight>(right, kBlock * kUnitBytes);
      LoadTile<kRight + 1>(right + kTileRowBytes, kBlock * kUnitBytes);
      left += kTileRowBytes, right += kStepBytes;
      for (int64_t line = 0; line < kStepBytes; line += kTileRowBytes)
        __builtin_prefetch(right + line);
      for_each([&](auto tile, auto v) CAFFE_FORCE_INLINE {
        TilesOfPairs::Add<tile * kBlockVectors + v, kLeft + tile, kRight + v>();
      });
    }
  }
  for_each([&](auto tile, auto v)
               CAFFE_FORCE_INLINE { StoreTile<tile * kBlockVectors + v>(at(tile, v), kSumStep); });
}

class WeightGradient {
 public:
  explicit WeightGradient(const Sizes& sizes)
      : s_(sizes), zeros_(static_cast<size_t>(std::max(s_.channels, s_.outputs)), bfloat16(0.0F)) {
    results_ = layout_.Add(static_cast<size_t>(s_.result_bytes()));
    pixels_ = layout_.Add(static_cast<size_t>(s_.pixel_bytes()));
    sums_ = layout_.Add<float>(s_.tasks() * kSumsOfBlock);
  }
  size_t workspace_bytes() const { return layout_.bytes(); }

  void Run(const KernelContext& ctx) const {
    char* const workspace = static_cast<char*>(ctx.workspace);
    const Images images = {s_, ctx.input(Grad::kX).as<const bfloat16>(),
                           ctx.input(Grad::kDy).as<const bfloat16>(), zeros_.data()};
    auto* const sums = reinterpret_cast<float*>(workspace + sums_);
    for (int64_t piece = 0; piece < s_.pieces(); piece += s_.pieces_of_part) {
      const int64_t count = std::min(s_.pieces_of_part, s_.pieces() - piece);
      Arrange(images, piece, count, workspace);
      Multiply(count, piece == 0, workspace, sums);
    }
    StoreSums(sums, ctx.accumulates(Grad::kDw), ctx.output(Grad::kDw).as<float>());
    if (!ctx.has_output(Grad::kDbias)) return;
    SumColumns(images.dy, s_.items * s_.rows * s_.columns, s_.outputs,
               ctx.accumulates(Grad::kDbias), ctx.output(Grad::kDbias).as<float>());
  }

 private:
  // Rearranges `count` pieces from `first` on.
  void Arrange(const Images& images, int64_t first, int64_t count, char* workspace) const {
    const int64_t steps = s_.steps_of_pixels();
    ParallelFor(count * steps, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t piece = i / steps, step = i % steps, position = step * kStepPixels;
        // One more than a step has, for pairs from odd positions.
        std::array<const bfloat16*, kStepPixels + 1> pixels;
        const int64_t left = s_.is_flat ? 0 : s_.geometry.pad[1];
        FindPositions(
            position, s_.pitch, left, s_.is_flat ? s_.pitch : left + s_.width,
            s_.geometry.stride[1] * s_.channels, images.zeros,
            [&](int64_t row) { return images.PixelRow(first + piece, row); }, pixels);
        for (int64_t version = 0; version < s_.versions; ++version) {
          ArrangePixels(pixels.data() + version, s_.channels, s_.versions * s_.pixel_block_bytes(),
                        workspace + pixels_ + version * s_.pixel_block_bytes() +
                            i * kStepPairs * kBlock * kUnitBytes);
        }
        if (step >= s_.steps) continue;
        std::array<const bfloat16*, kStepPixels> results;
        FindPositions(
            position, s_.pitch, 0, s_.columns, s_.outputs, images.zeros,
            [&](int64_t row) { return images.ResultRow(first + piece, row); }, results);
        ArrangeResults(results, s_.outputs, s_.result_step(),
                       workspace + results_ + (piece * s_.steps + step) * kTileRowBytes);
      }
    });
  }

  // Threads share the sums: taps of pairs of blocks.
  void Multiply(int64_t pieces, bool is_first, const char* workspace, float* sums) const {
    alignas(64) static constexpr std::array<float, kFloatLanes> kZeros = {};
    ParallelFor(s_.threads, 1, [&](int64_t begin, int64_t end) {
      const TilesInUse tiles(TileCut(kTileRows, kTileUnits));
      for (int64_t task = s_.tasks() * begin / s_.threads; task < s_.tasks() * end / s_.threads;
           ++task) {
        const int64_t offset = s_.Offset(task % s_.taps), version = offset % 2;
        const int64_t blocks = task / s_.taps;
        const int64_t output = blocks / s_.channel_blocks, channel = blocks % s_.channel_blocks;
        AddPart({workspace + results_ + output * kBlock * s_.result_step(),
                 workspace + pixels_ + (channel * s_.versions + version) * s_.pixel_block_bytes() +
                     offset / 2 * kBlock * kUnitBytes,
                 s_.result_step(), pieces, s_.steps,
                 s_.steps_of_pixels() * kStepPairs * kBlock * kUnitBytes},
                is_first ? kZeros.data() : nullptr, sums + task * kSumsOfBlock);
      }
    });
  }

  // Stores or adds the sums in the order of weights: output, channel, tap.
  void StoreSums(const float* sums, bool adds, float* to) const {
    ParallelFor(s_.outputs, 1 + kPointwiseGrain / (s_.channels * s_.taps),
                [&](int64_t begin, int64_t end) {
                  for (int64_t k = begin; k < end; ++k) StoreRow(sums, k, adds, to);
                });
  }
  void StoreRow(const float* sums, int64_t output, bool adds, float* to) const {
    float* row = to + output * s_.channels * s_.taps;
    for (int64_t block = 0; block < s_.channel_blocks; ++block) {
      const int64_t count = std::min(kBlock, s_.channels - block * kBlock);
      const int64_t first = (output / kBlock * s_.channel_blocks + block) * s_.taps;
      const float* const from = sums + first * kSumsOfBlock + output % kBlock * kBlock;
      for (int64_t tap = 0; tap < s_.taps; ++tap) {
        for (int64_t c = 0; c < count; ++c) {
          float& weight = row[c * s_.taps + tap];
          weight = (adds ? weight : 0.0F) + from[tap * kSumsOfBlock + c];
        }
      }
      row += count * s_.taps;
    }
  }

  const Sizes s_;
  const std::vector<bfloat16> zeros_;
  WorkspaceLayout layout_;
  size_t results_ = 0, pixels_ = 0, sums_ = 0;
};

KernelOrRefusal MakeWeightGradient(const Grad& op, const KernelRequest& request) {
  const OperandDesc &x = request.inputs[Grad::kX], &dy = request.inputs[Grad::kDy];
  const ops::ConvGeometry& g = op.geometry;
  if (g.spatial_axes() != 2 || g.group != 1) return Refusal{"only images, without groups"};
  if (x.layout != Layout::kChannelsLast || dy.layout != Layout::kChannelsLast)
    return Refusal{"only images with channels last"};
  if (x.dtype != dy.dtype) return Refusal{"images of several types"};
  if (x.count() == 0 || dy.count() == 0) return Refusal{"an empty batch"};
  if (std::min(x.shape[1], dy.shape[1]) < kFloatLanes) return Refusal{"less than 16 channels"};
  for (const OperandDesc& output : request.outputs) {
    if (output.present && output.dtype != DType::kFloat) return Refusal{"only float gradients"};
  }
  if (!request.outputs[Grad::kDw].present)
    return Refusal{"only together with the gradient of the weights"};
  const bool is_flat = AreAll(g.kernel, 1) && AreAll(g.pad, 0);
  if (!is_flat && !AreAll(g.stride, 1)) return Refusal{"a stride of windows of several pixels"};
  if (!AreTilesFaster(x.shape, dy.shape, g))
    return Refusal{"few weights, for which oneDNN is faster"};
  if (const auto refusal = RefuseLarge(g, x.shape)) return *refusal;
  const auto gradient = std::make_shared<WeightGradient>(Sizes(g, x.shape, dy.shape));
  return Kernel{"", [gradient](const KernelContext& ctx) { gradient->Run(ctx); },
                gradient->workspace_bytes()};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, Grad, "conv-grad-weights-by-tiles",
                              KernelRank::kBest, MakeWeightGradient,
                              UnlessTiles({.signatures = {{DType::kBFloat16, DType::kFloat}}}));

}  // namespace
}  // namespace caffe::cpu::gradient_tiles
#endif
