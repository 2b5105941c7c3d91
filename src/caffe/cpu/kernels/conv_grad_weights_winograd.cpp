// Gradients at the weights of 3x3 convolutions in float and bfloat16 by Winograd's minimal
// filtering. A tile's results are linear in the transformed filter, so the gradient at that is, for
// each position, the product of the transformed gradients of y and the transformed patches of x,
// summed over all tiles. It is transformed back to 3x3 once.
#include <omp.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "caffe/core/threads_for_now.hpp"
#include "caffe/cpu/kernels/column_sums.hpp"
#include "caffe/cpu/kernels/conv_descs.hpp"
#include "caffe/cpu/kernels/winograd.hpp"
#include "caffe/cpu/onednn.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

using Grad = ops::ConvGradWeights;

// Transformed patches and gradients of a part of the tiles take this many bytes, so that they are
// still in a cache when they are multiplied; but each part has enough tiles to amortize reading and
// writing the sums.
constexpr int64_t kPartBytes = 4 << 20, kFewestPartTiles = 128;
// Minimum number of tiles for each filter, C to K channels counting as C K / (C + K): with fewer,
// the sums of 16 positions cost more than is saved.
constexpr int64_t kPartTilesPerFilter = 2;

// The tiles, divided into parts.
struct Parts : Tiles {
  int64_t parts, tiles;

  Parts(int64_t size_of_tile, const std::vector<int64_t>& pad, const Shape& x, const Shape& y)
      : Tiles(size_of_tile, pad, x, y) {
    const int64_t patch = size_of_tile + 2;
    const int64_t tile_bytes =
        patch * patch * (channels + outputs) * static_cast<int64_t>(sizeof(float));
    const int64_t most = std::max(kFewestPartTiles, kPartBytes / tile_bytes);
    parts = (count + most - 1) / most;
    tiles = (count + parts - 1) / parts;
  }

  // Distance in floats between positions, as for Tiling.
  int64_t patch_stride() const { return tiles * channels + kFloatLanes; }
  int64_t gradient_stride() const { return tiles * outputs + kFloatLanes; }
  int64_t sums() const { return outputs * channels; }
  int64_t sum_stride() const { return sums() + kFloatLanes; }
};

// Transforms the gradients of a tile's results: a vector of channels for each position.
template <typename Tile, typename T>
CAFFE_CPU_CLONES void SpreadGradients(const std::array<const T*, Tile::kSize * Tile::kSize>& dy,
                                      int64_t outputs, int64_t stride, float* to) {
  for (int64_t k = 0; k < outputs; k += kFloatLanes) {
    TransformSquare<Tile::kSize, Tile::kPatch>(
        [](const auto& from, auto& values) CAFFE_FORCE_INLINE { Tile::Spread(from, values); },
        [&](auto row, auto column, FloatVector& value)
            CAFFE_FORCE_INLINE { Load(dy[row * Tile::kSize + column] + k, value); },
        [&](auto row, auto column, const FloatVector& value)
            CAFFE_FORCE_INLINE { Store(value, to + (row * Tile::kPatch + column) * stride + k); });
  }
}

// The reverse of the filters' transformation, for `blocks` times 16 of them: from sums for each
// position, `stride` apart, to 3x3.
template <typename Tile>
CAFFE_CPU_CLONES void GatherFilters(const float* sums, int64_t stride, int64_t blocks, bool adds,
                                    float* filters) {
  constexpr int kTaps = 9;
  for (int64_t block = 0; block < blocks; ++block) {
    float taps[kTaps][kFloatLanes];
    TransformSquare<Tile::kPatch, 3>(
        [](const auto& from, auto& values) CAFFE_FORCE_INLINE { Tile::Gather(from, values); },
        [&](auto row, auto column, FloatVector& value) CAFFE_FORCE_INLINE {
          Load(sums + (row * Tile::kPatch + column) * stride + block * kFloatLanes, value);
        },
        [&](auto row, auto column, const FloatVector& value)
            CAFFE_FORCE_INLINE { Store(value, taps[row * 3 + column]); });
    float* to = filters + block * kFloatLanes * kTaps;
    for (int lane = 0; lane < kFloatLanes; ++lane) {
      for (int tap = 0; tap < kTaps; ++tap, ++to)
        *to = adds ? *to + taps[tap][lane] : taps[tap][lane];
    }
  }
}

// The kernel's state; Run() must be called from one thread at a time.
template <typename T>
class WinogradOfWeights {
 public:
  using Tile = TileOf<T>;

  explicit WinogradOfWeights(const Parts& parts)
      : parts_(parts), zeros_(static_cast<size_t>(std::max(parts.channels, parts.outputs))) {
    const OneDnnProduct::Shape shape{.rows = parts.outputs,
                                     .columns = parts.channels,
                                     .inner = parts.tiles,
                                     .transpose_a = true};
    const int threads = std::min<int>(omp_get_max_threads(), kPositions<Tile>);
    const ThreadsForNow planned_for(1);
    for (int i = 0; i < threads; ++i) products_.emplace_back(shape);
    const auto floats = [&](int64_t count) {
      return layout_.Add(static_cast<size_t>(count) * sizeof(float));
    };
    patches_ = floats(kPositions<Tile> * parts.patch_stride());
    gradients_ = floats(kPositions<Tile> * parts.gradient_stride());
    sums_ = floats(kPositions<Tile> * parts.sum_stride());
    scratchpads_ = layout_.Add(products_[0].workspace_bytes() * products_.size());
  }

  size_t workspace_bytes() const { return layout_.bytes(); }

  void Run(const KernelContext& ctx) {
    char* const workspace = static_cast<char*>(ctx.workspace);
    for (int64_t part = 0; part < parts_.parts; ++part) {
      Transform(ctx, part);
      Multiply(part > 0, workspace);
    }
    const auto* const sums = reinterpret_cast<const float*>(workspace + sums_);
    auto* const filters = ctx.output(Grad::kDw).as<float>();
    const bool adds = ctx.accumulates(Grad::kDw);
    ParallelFor(parts_.sums() / kFloatLanes, 64, [&](int64_t begin, int64_t end) {
      GatherFilters<Tile>(sums + begin * kFloatLanes, parts_.sum_stride(), end - begin, adds,
                          filters + begin * kFloatLanes * 9);
    });
    if (!ctx.has_output(Grad::kDbias)) return;
    SumColumns(ctx.input(Grad::kDy).as<const T>(), ctx.input(Grad::kDy).count() / parts_.outputs,
               parts_.outputs, ctx.accumulates(Grad::kDbias), ctx.output(Grad::kDbias).as<float>());
  }

 private:
  // Transforms the patches and gradients of a part's tiles. Those that the last part lacks are 0.
  void Transform(const KernelContext& ctx, int64_t part) const {
    char* const workspace = static_cast<char*>(ctx.workspace);
    auto* const patches = reinterpret_cast<float*>(workspace + patches_);
    auto* const gradients = reinterpret_cast<float*>(workspace + gradients_);
    const auto* const x = ctx.input(Grad::kX).as<const T>();
    const auto* const dy = ctx.input(Grad::kDy).as<const T>();
    const int64_t first = part * parts_.tiles;
    const int64_t tiles = std::min(parts_.tiles, parts_.count - first);
    ParallelFor(tiles, 16, [&](int64_t begin, int64_t end) {
      ReadPatches<Tile>(parts_, x, zeros_.data(), first + begin, end - begin, parts_.patch_stride(),
                        patches + begin * parts_.channels);
      for (int64_t i = begin; i < end; ++i)
        SpreadGradients<Tile>(ResultsOf<Tile>(parts_, first + i, dy, parts_.outputs, zeros_.data()),
                              parts_.outputs, parts_.gradient_stride(),
                              gradients + i * parts_.outputs);
    });
    if (tiles == parts_.tiles) return;
    const auto clear = [&](float* rows, int64_t stride, int64_t columns) {
      for (int64_t p = 0; p < kPositions<Tile>; ++p)
        std::fill(rows + p * stride + tiles * columns, rows + p * stride + parts_.tiles * columns,
                  0.0F);
    };
    clear(patches, parts_.patch_stride(), parts_.channels);
    clear(gradients, parts_.gradient_stride(), parts_.outputs);
  }

  // Threads share the positions.
  void Multiply(bool adds, char* workspace) {
    auto* const patches = reinterpret_cast<float*>(workspace + patches_);
    auto* const gradients = reinterpret_cast<float*>(workspace + gradients_);
    auto* const sums = reinterpret_cast<float*>(workspace + sums_);
    const auto threads = static_cast<int64_t>(products_.size());
    ParallelFor(threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t thread = begin; thread < end; ++thread) {
        OneDnnProductOrSum& product = products_[static_cast<size_t>(thread)];
        char* const scratchpad =
            workspace + scratchpads_ + product.workspace_bytes() * static_cast<size_t>(thread);
        const int64_t last = kPositions<Tile> * (thread + 1) / threads;
        for (int64_t p = kPositions<Tile> * thread / threads; p < last; ++p) {
          product.Run(adds, gradients + p * parts_.gradient_stride(),
                      patches + p * parts_.patch_stride(), nullptr, sums + p * parts_.sum_stride(),
                      scratchpad);
        }
      }
    });
  }

  Parts parts_;
  std::vector<T> zeros_;  // stand for pixels outside the images
  std::vector<OneDnnProductOrSum> products_;
  WorkspaceLayout layout_;
  size_t patches_ = 0, gradients_ = 0, sums_ = 0, scratchpads_ = 0;
};

std::optional<Refusal> RefuseGradient(const ops::ConvGeometry& g, const KernelRequest& request) {
  const OperandDesc& dy = request.inputs[Grad::kDy];
  if (auto refusal = RefuseUntiled(g, request.inputs[Grad::kX], dy, dy.shape[1])) return refusal;
  for (const OperandDesc& output : request.outputs) {
    if (output.present && output.dtype != DType::kFloat) return Refusal{"only float gradients"};
  }
  if (!request.outputs[Grad::kDw].present)
    return Refusal{"only together with the gradient of the weights"};
  return std::nullopt;
}

template <typename T>
KernelOrRefusal MakeOfImages(const Grad& op, const KernelRequest& request) {
  const Parts parts(TileOf<T>::kSize, op.geometry.pad, request.inputs[Grad::kX].shape,
                    request.inputs[Grad::kDy].shape);
  if (parts.count < kPartTilesPerFilter * parts.sums() / (parts.channels + parts.outputs))
    return Refusal{"images that are small for the filters"};
  try {
    const auto winograd = std::make_shared<WinogradOfWeights<T>>(parts);
    return Kernel{"", [winograd](const KernelContext& ctx) { winograd->Run(ctx); },
                  winograd->workspace_bytes()};
  } catch (const dnnl::error& error) {
    return Refusal{std::string("oneDNN: ") + error.what()};
  }
}

KernelOrRefusal MakeGradientAtWeights(const Grad& op, const KernelRequest& request) {
  if (const auto refusal = RefuseGradient(op.geometry, request)) return *refusal;
  const DType type = request.inputs[Grad::kX].dtype;
  if (type != request.inputs[Grad::kDy].dtype) return Refusal{"images of several types"};
  if (type == DType::kFloat) return MakeOfImages<float>(op, request);
  if (OneDnnMultipliesTiles()) return Refusal{"this processor has AMX, which multiplies faster"};
  return MakeOfImages<bfloat16>(op, request);
}

// Comes before oneDNN's, which has the same rank, because of its name.
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::ConvGradWeights,
                              "conv-grad-weights-by-winograd", KernelRank::kBest,
                              MakeGradientAtWeights, {.signatures = WinogradSignatures()});

}  // namespace
}  // namespace caffe::cpu
