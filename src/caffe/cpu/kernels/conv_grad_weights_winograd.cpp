// Gradients at the weights of 3x3 convolutions in float by Winograd's minimal filtering. A tile's
// results are linear in the transformed filter, so the gradient at that is, for each of the 16
// positions, the product of the transformed gradients of y and the transformed patches of x, summed
// over all tiles. It is transformed back to 3x3 once.
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
  int64_t parts, size;

  Parts(const std::vector<int64_t>& pad, const Shape& x, const Shape& y) : Tiles(pad, x, y) {
    const int64_t tile_bytes =
        kPositions * (channels + outputs) * static_cast<int64_t>(sizeof(float));
    const int64_t most = std::max(kFewestPartTiles, kPartBytes / tile_bytes);
    parts = (count + most - 1) / most;
    size = (count + parts - 1) / parts;
  }

  // Distance in floats between positions, as for Tiling.
  int64_t patch_stride() const { return size * channels + kFloatLanes; }
  int64_t gradient_stride() const { return size * outputs + kFloatLanes; }
  int64_t sums() const { return outputs * channels; }
};

// a, a + b, a - b, -b of two numbers in a row or column.
struct Spread {
  FloatVector first, second, third, last;

  CAFFE_FORCE_INLINE Spread(const FloatVector& a, const FloatVector& b)
      : first(a), second(a + b), third(a - b), last(-b) {}
};

// Transforms the gradients of a tile's results: a vector of channels for each position.
CAFFE_CPU_CLONES void SpreadGradients(const std::array<const float*, 4>& dy, int64_t outputs,
                                      int64_t stride, float* to) {
  for (int64_t k = 0; k < outputs; k += kFloatLanes) {
    FloatVector d[4];
    for (int64_t i = 0; i < 4; ++i) Load(dy[i] + k, d[i]);
    const Spread left(d[0], d[2]), right(d[1], d[3]);  // columns
    const auto store = [&](int64_t row, const FloatVector& a, const FloatVector& b)
                           CAFFE_FORCE_INLINE {
                             const Spread values(a, b);
                             float* const at = to + row * kPatch * stride + k;
                             Store(values.first, at);
                             Store(values.second, at + stride);
                             Store(values.third, at + 2 * stride);
                             Store(values.last, at + 3 * stride);
                           };
    store(0, left.first, right.first);
    store(1, left.second, right.second);
    store(2, left.third, right.third);
    store(3, left.last, right.last);
  }
}

// m0 + (m1 + m2) / 2, (m1 - m2) / 2, (m1 + m2) / 2 + m3 of four numbers in a row or column.
struct Gathered {
  FloatVector first, second, third;

  CAFFE_FORCE_INLINE Gathered(const FloatVector& a, const FloatVector& b, const FloatVector& c,
                              const FloatVector& d)
      : first(a + 0.5F * (b + c)), second(0.5F * (b - c)), third(0.5F * (b + c) + d) {}
};

// The reverse of the filters' transformation, for `blocks` times 16 of them: from 4x4 sums,
// `stride` apart, to 3x3.
CAFFE_CPU_CLONES void GatherFilters(const float* sums, int64_t stride, int64_t blocks, bool adds,
                                    float* filters) {
  constexpr int kTaps = 9;
  for (int64_t block = 0; block < blocks; ++block) {
    FloatVector rows[kPatch][3];
    for (int64_t row = 0; row < kPatch; ++row) {
      const float* const from = sums + row * kPatch * stride + block * kFloatLanes;
      FloatVector m[kPatch];
      for (int64_t i = 0; i < kPatch; ++i) Load(from + i * stride, m[i]);
      const Gathered values(m[0], m[1], m[2], m[3]);
      rows[row][0] = values.first, rows[row][1] = values.second, rows[row][2] = values.third;
    }
    float taps[kTaps][kFloatLanes];
    for (int64_t column = 0; column < 3; ++column) {
      const Gathered values(rows[0][column], rows[1][column], rows[2][column], rows[3][column]);
      Store(values.first, taps[column]);
      Store(values.second, taps[3 + column]);
      Store(values.third, taps[6 + column]);
    }
    float* to = filters + block * kFloatLanes * kTaps;
    for (int lane = 0; lane < kFloatLanes; ++lane) {
      for (int tap = 0; tap < kTaps; ++tap, ++to)
        *to = adds ? *to + taps[tap][lane] : taps[tap][lane];
    }
  }
}

// The kernel's state; Run() must be called from one thread at a time.
class WinogradOfWeights {
 public:
  explicit WinogradOfWeights(const Parts& parts)
      : parts_(parts), zeros_(static_cast<size_t>(std::max(parts.channels, parts.outputs))) {
    const OneDnnProduct::Shape shape{
        .rows = parts.outputs, .columns = parts.channels, .inner = parts.size, .transpose_a = true};
    const int threads = std::min<int>(omp_get_max_threads(), kPositions);
    const ThreadsForNow planned_for(1);
    for (int i = 0; i < threads; ++i) products_.emplace_back(shape);
    const auto floats = [&](int64_t count) {
      return layout_.Add(static_cast<size_t>(count) * sizeof(float));
    };
    patches_ = floats(kPositions * parts.patch_stride());
    gradients_ = floats(kPositions * parts.gradient_stride());
    sums_ = floats(kPositions * parts.sums());
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
      GatherFilters(sums + begin * kFloatLanes, parts_.sums(), end - begin, adds,
                    filters + begin * kFloatLanes * 9);
    });
    if (!ctx.has_output(Grad::kDbias)) return;
    SumColumns(ctx.input(Grad::kDy).as<const float>(),
               ctx.input(Grad::kDy).count() / parts_.outputs, parts_.outputs,
               ctx.accumulates(Grad::kDbias), ctx.output(Grad::kDbias).as<float>());
  }

 private:
  // Transforms the patches and gradients of a part's tiles. Those that the last part lacks are 0.
  void Transform(const KernelContext& ctx, int64_t part) const {
    char* const workspace = static_cast<char*>(ctx.workspace);
    auto* const patches = reinterpret_cast<float*>(workspace + patches_);
    auto* const gradients = reinterpret_cast<float*>(workspace + gradients_);
    const auto* const x = ctx.input(Grad::kX).as<const float>();
    const auto* const dy = ctx.input(Grad::kDy).as<const float>();
    const int64_t first = part * parts_.size;
    const int64_t tiles = std::min(parts_.size, parts_.count - first);
    ParallelFor(tiles, 16, [&](int64_t begin, int64_t end) {
      ReadPatches(parts_, x, zeros_.data(), first + begin, end - begin, parts_.patch_stride(),
                  patches + begin * parts_.channels);
      for (int64_t i = begin; i < end; ++i)
        SpreadTile(dy, first + i, gradients + i * parts_.outputs);
    });
    if (tiles == parts_.size) return;
    const auto clear = [&](float* rows, int64_t stride, int64_t columns) {
      for (int64_t p = 0; p < kPositions; ++p)
        std::fill(rows + p * stride + tiles * columns, rows + p * stride + parts_.size * columns,
                  0.0F);
    };
    clear(patches, parts_.patch_stride(), parts_.channels);
    clear(gradients, parts_.gradient_stride(), parts_.outputs);
  }

  void SpreadTile(const float* dy, int64_t tile, float* to) const {
    const Parts& t = parts_;
    const TilePlace place(t, tile);
    std::array<const float*, 4> from = {};
    for (int64_t p = 0; p < 4; ++p) {
      const int64_t row = place.row + p / kTile, column = place.column + p % kTile;
      const bool is_inside = row < t.rows && column < t.columns;
      from[p] = is_inside ? dy + ((place.item * t.rows + row) * t.columns + column) * t.outputs
                          : zeros_.data();
    }
    SpreadGradients(from, t.outputs, t.gradient_stride(), to);
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
        const int64_t last = kPositions * (thread + 1) / threads;
        for (int64_t p = kPositions * thread / threads; p < last; ++p) {
          product.Run(adds, gradients + p * parts_.gradient_stride(),
                      patches + p * parts_.patch_stride(), nullptr, sums + p * parts_.sums(),
                      scratchpad);
        }
      }
    });
  }

  Parts parts_;
  std::vector<float> zeros_;  // stand for pixels outside the images
  std::vector<OneDnnProductOrSum> products_;
  WorkspaceLayout layout_;
  size_t patches_ = 0, gradients_ = 0, sums_ = 0, scratchpads_ = 0;
};

std::optional<Refusal> RefuseGradient(const ops::ConvGeometry& g, const KernelRequest& request) {
  if (auto refusal = RefuseUntiled(g, request.inputs[Grad::kX], request.inputs[Grad::kDy]))
    return refusal;
  for (const OperandDesc& output : request.outputs) {
    if (output.present && output.dtype != DType::kFloat) return Refusal{"only float gradients"};
  }
  if (!request.outputs[Grad::kDw].present)
    return Refusal{"only together with the gradient of the weights"};
  return std::nullopt;
}

KernelOrRefusal MakeGradientAtWeights(const Grad& op, const KernelRequest& request) {
  if (const auto refusal = RefuseGradient(op.geometry, request)) return *refusal;
  const Parts parts(op.geometry.pad, request.inputs[Grad::kX].shape,
                    request.inputs[Grad::kDy].shape);
  if (parts.count < kPartTilesPerFilter * parts.sums() / (parts.channels + parts.outputs))
    return Refusal{"images that are small for the filters"};
  try {
    const auto winograd = std::make_shared<WinogradOfWeights>(parts);
    return Kernel{"", [winograd](const KernelContext& ctx) { winograd->Run(ctx); },
                  winograd->workspace_bytes()};
  } catch (const dnnl::error& error) {
    return Refusal{std::string("oneDNN: ") + error.what()};
  }
}

// Comes before oneDNN's, which has the same rank, because of its name.
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::ConvGradWeights,
                              "conv-grad-weights-by-winograd", KernelRank::kBest,
                              MakeGradientAtWeights,
                              {.signatures = {{DType::kFloat, DType::kFloat}}});

}  // namespace
}  // namespace caffe::cpu
