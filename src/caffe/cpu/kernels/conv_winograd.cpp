// 3x3 convolutions in float and bfloat16, and the gradients at their inputs, by Winograd's minimal
// filtering. The gradient is a convolution of dy with filters that are turned around.
#include <omp.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "caffe/cpu/kernels/conv_descs.hpp"
#include "caffe/cpu/kernels/placed_conv.hpp"
#include "caffe/cpu/kernels/row_product.hpp"
#include "caffe/cpu/kernels/winograd.hpp"
#include "caffe/cpu/onednn.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// Tiles per block of products: enough to amortize reading the weights, few enough to stay in a
// cache.
constexpr int64_t kMostTiles = 56, kFewestTiles = 20;
// Minimum number of tiles per transformed filter, if filters are transformed in each pass; with
// fewer, the transform costs more than it saves. C to K channels count as C K / (C + K) filters.
template <typename T>
constexpr int64_t kTilesPerFilter = std::is_same_v<T, float> ? 2 : 1;

// The tiles of y, divided into blocks.
struct Tiling : Tiles {
  int64_t pixel, offset;  // channels of a pixel of y, and offset of the results in them
  int64_t threads, blocks, block;
  RowProduct<float> product;  // of a block's patches and the filters, at one position

  Tiling(const Tiles& tiles, int64_t pixel, int64_t offset)
      : Tiles(tiles),
        pixel(pixel),
        offset(offset),
        threads(omp_get_max_threads()),
        product{.columns = outputs, .inner = channels} {
    blocks = (count + kMostTiles - 1) / kMostTiles;
    blocks = (blocks + threads - 1) / threads * threads;
    block = (count + blocks - 1) / blocks;
  }

  // Distance in floats between positions. Not a multiple of 4 KiB, at which addresses compete for
  // the same cache lines.
  int64_t patch_stride() const { return block * channels + kFloatLanes; }
  int64_t product_stride() const { return block * product.row() + kFloatLanes; }
  int64_t filter_stride() const { return product.packed() + kFloatLanes; }
};

// Epilogue of the products: y = sums + bias + addend, then a ReLU.
struct Finish {
  const float* bias = nullptr;  // null: none
  bool adds = false, has_relu = false;
  float slope = 0;
};

// Computes a tile's results from its products. `y` and `added` are null for results outside y.
template <typename Tile, typename T, size_t kResults>
CAFFE_CPU_CLONES void WriteTile(const float* from, int64_t stride, int64_t outputs,
                                const Finish& finish, const std::array<const T*, kResults>& added,
                                const std::array<T*, kResults>& y) {
  for (int64_t k = 0; k < outputs; k += kFloatLanes) {
    FloatVector bias = {};
    if (finish.bias != nullptr) Load(finish.bias + k, bias);
    TransformSquare<Tile::kPatch, Tile::kSize>(
        [](const auto& sums, auto& results) CAFFE_FORCE_INLINE { Tile::Results(sums, results); },
        [&](auto row, auto column, FloatVector& sums)
            CAFFE_FORCE_INLINE { Load(from + (row * Tile::kPatch + column) * stride + k, sums); },
        [&](auto row, auto column, const FloatVector& result) CAFFE_FORCE_INLINE {
          constexpr size_t i = row * Tile::kSize + column;
          if (y[i] == nullptr) return;
          FloatVector value = result + bias;
          if (finish.adds) {
            FloatVector other;
            Load(added[i] + k, other);
            value += other;
          }
          if (finish.has_relu) value = value > 0 ? value : value * finish.slope + 0.0F;
          Store(value, y[i] + k);
        });
  }
}

// The filters of 16 outputs that read one channel. Outputs are output_step numbers apart.
template <typename T>
struct Filters {
  const T* first;
  int64_t output_step;
  bool is_turned;

  void Load(float (&taps)[9][kFloatLanes]) const {
    for (int64_t k = 0; k < kFloatLanes; ++k) {
      const T* const filter = first + k * output_step;
      for (int64_t tap = 0; tap < 9; ++tap)
        taps[tap][k] = static_cast<float>(filter[is_turned ? 8 - tap : tap]);
    }
  }
};

// Transforms the filters: a vector of outputs for each position, `stride` apart.
template <typename Tile>
CAFFE_CPU_CLONES void TransformFilters(const float (&taps)[9][kFloatLanes], int64_t stride,
                                       float* to) {
  TransformSquare<3, Tile::kPatch>(
      [](const auto& from, auto& values) CAFFE_FORCE_INLINE { Tile::Filter(from, values); },
      [&](auto row, auto column, FloatVector& value)
          CAFFE_FORCE_INLINE { Load(taps[row * 3 + column], value); },
      [&](auto row, auto column, const FloatVector& value)
          CAFFE_FORCE_INLINE { Store(value, to + (row * Tile::kPatch + column) * stride); });
}

// The kernel. For the gradient at the input, dy has the place of x, and dx that of y.
template <typename T>
class Winograd {
 public:
  using Tile = TileOf<T>;

  // `is_gradient`: filters are turned around, and their inputs are what is written.
  Winograd(const Tiling& tiling, const PlacedConv& conv, bool is_gradient)
      : tiling_(tiling),
        conv_(conv),
        is_gradient_(is_gradient),
        zeros_(static_cast<size_t>(tiling_.channels)) {
    const auto floats = [&](int64_t count) {
      return part_.Add(static_cast<size_t>(kPositions<Tile> * count) * sizeof(float));
    };
    patches_offset_ = floats(tiling_.patch_stride());
    products_offset_ = floats(tiling_.product_stride());
  }

  size_t workspace_bytes() const { return part_.bytes() * static_cast<size_t>(tiling_.threads); }

  PackedOperand Weights() const {
    const auto pack = [t = tiling_, is_gradient = is_gradient_](const KernelContext& ctx) {
      Pack(t, is_gradient, ctx.input(0).as<const T>(), ctx.output(0).as<float>());
    };
    const auto count = static_cast<size_t>(kPositions<Tile> * tiling_.filter_stride());
    return {ops::Conv::kW, count * sizeof(float), pack, 0};
  }
  void Run(const KernelContext& ctx) const;

 private:
  static void Pack(const Tiling& t, bool is_gradient, const T* filters, float* packed);
  void RunBlock(const KernelContext& ctx, const Finish& finish, int64_t block,
                int64_t thread) const;
  void WriteTiles(const KernelContext& ctx, const Finish& finish, int64_t first, int64_t tiles,
                  const float* products) const;

  Tiling tiling_;
  PlacedConv conv_;
  bool is_gradient_;
  std::vector<T> zeros_;  // stand for pixels outside the image
  WorkspaceLayout part_;  // per thread
  size_t patches_offset_ = 0, products_offset_ = 0;
};

template <typename T>
void Winograd<T>::Pack(const Tiling& t, bool is_gradient, const T* filters, float* packed) {
  const RowProduct<float>& product = t.product;
  if (t.outputs % kBlock != 0) {
    for (int64_t p = 0; p < kPositions<Tile>; ++p) product.Clear(packed + p * t.filter_stride());
  }
  const int64_t vectors = t.outputs / kFloatLanes;
  ParallelFor(vectors * t.channels, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t output = i / t.channels * kFloatLanes, channel = i % t.channels;
      const int64_t first =
          is_gradient ? channel * t.outputs + output : output * t.channels + channel;
      float taps[9][kFloatLanes];
      Filters<T>{filters + first * 9, is_gradient ? 9 : t.channels * 9, is_gradient}.Load(taps);
      TransformFilters<Tile>(
          taps, t.filter_stride(),
          packed + output / kBlock * product.panel() + channel * kBlock + output % kBlock);
    }
  });
}

template <typename T>
void Winograd<T>::Run(const KernelContext& ctx) const {
  Finish finish;
  if (ctx.has_input(ops::Conv::kBias)) finish.bias = ctx.input(ops::Conv::kBias).as<const float>();
  for (const ops::Pointwise& entry : conv_.conv.epilogue) {
    finish.adds = finish.adds || entry.kind == ops::Pointwise::Kind::kAdd;
    if (entry.kind != ops::Pointwise::Kind::kRelu) continue;
    finish.has_relu = true;
    finish.slope = entry.a;
  }
  conv_.CopyWhole(ctx);
  ParallelFor(tiling_.threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t thread = begin; thread < end; ++thread) {
      const int64_t last = tiling_.blocks * (thread + 1) / tiling_.threads;
      for (int64_t block = tiling_.blocks * thread / tiling_.threads; block < last; ++block)
        RunBlock(ctx, finish, block, thread);
    }
  });
}

template <typename T>
void Winograd<T>::RunBlock(const KernelContext& ctx, const Finish& finish, int64_t block,
                           int64_t thread) const {
  const int64_t first = block * tiling_.block;
  const int64_t tiles = std::min(tiling_.block, tiling_.count - first);
  if (tiles <= 0) return;
  char* const part =
      static_cast<char*>(ctx.workspace) + static_cast<size_t>(thread) * part_.bytes();
  auto* const patches = reinterpret_cast<float*>(part + patches_offset_);
  auto* const products = reinterpret_cast<float*>(part + products_offset_);
  ReadPatches<Tile>(tiling_, ctx.input(ops::Conv::kX).as<const T>(), zeros_.data(), first, tiles,
                    tiling_.patch_stride(), patches);
  const float* const weights = ctx.input(ops::Conv::kW).as<const float>();
  for (int64_t p = 0; p < kPositions<Tile>; ++p) {
    tiling_.product.Multiply(patches + p * tiling_.patch_stride(), tiles,
                             weights + p * tiling_.filter_stride(),
                             products + p * tiling_.product_stride());
  }
  WriteTiles(ctx, finish, first, tiles, products);
}

template <typename T>
void Winograd<T>::WriteTiles(const KernelContext& ctx, const Finish& finish, int64_t first,
                             int64_t tiles, const float* products) const {
  const Tiling& t = tiling_;
  const T* const read =
      finish.adds ? ctx.input(ops::AddedOperand(conv_.conv.epilogue)).as<const T>() : nullptr;
  T* const written = ctx.output(0).as<T>() + t.offset;
  std::array<const T*, Tile::kSize* Tile::kSize> added = {};
  for (int64_t i = 0; i < tiles; ++i) {
    if (finish.adds) added = ResultsOf<Tile, const T>(t, first + i, read, t.pixel, nullptr);
    WriteTile<Tile>(products + i * t.product.row(), t.product_stride(), t.outputs, finish, added,
                    ResultsOf<Tile, T>(t, first + i, written, t.pixel, nullptr));
  }
}

// True if bfloat16 products of all 9 taps take so much longer that transforms pay. In cycles of a
// core of a Zen 4, which starts a vector of 16 products of float or 32 of bfloat16 in each.
bool PaysInBFloat16(const Tiling& t, int64_t rounds) {
  constexpr double kTransform = 500;  // of a tile and 16 channels
  constexpr double kOverhead = 1.1;   // of products in small blocks
  // In a loop, transformed filters of all layers are in memory together.
  constexpr double kLargeFilters = 1 << 20;
  const auto tiles = static_cast<double>(t.tiles_y * t.tiles_x);
  const auto pixels = static_cast<double>(t.rows * t.columns);
  const auto filters = static_cast<double>(t.channels * t.outputs);
  const auto channels = static_cast<double>(t.channels + t.outputs);
  const double ours = tiles * (kOverhead * kPositions<LargeTile> * filters + kTransform * channels);
  const double gain = rounds > 1 && kPositions<LargeTile> * filters > kLargeFilters ? 0.7 : 0.9;
  return ours / kFloatLanes < gain * pixels * 9 * filters / (2 * kFloatLanes);
}

// `transforms`: filters are transformed in each pass, which has that many rounds.
template <typename T>
std::optional<Refusal> RefuseFewTiles(const Tiling& tiling, bool transforms, int64_t rounds) {
  if (tiling.block < kFewestTiles)
    return Refusal{"an image that is small for the threads of this processor"};
  const int64_t filters = tiling.channels * tiling.outputs / (tiling.channels + tiling.outputs);
  if (transforms && tiling.count * rounds < kTilesPerFilter<T> * filters)
    return Refusal{"images that are small for filters which have to be transformed each time"};
  if (!std::is_same_v<T, float> && !PaysInBFloat16(tiling, rounds))
    return Refusal{"transforms that take longer than they save"};
  return std::nullopt;
}

// `pad`: of the windows over what is read. `outputs`: channels that are written.
template <typename T>
KernelOrRefusal MakeWinograd(const PlacedConv& conv, const std::vector<int64_t>& pad,
                             int64_t outputs, bool is_gradient, const KernelRequest& request) {
  const OperandDesc &x = request.inputs[ops::Conv::kX], &w = request.inputs[ops::Conv::kW];
  OperandDesc y = request.outputs[0];
  const int64_t pixel = y.shape[1];
  y.shape = Shape{y.shape[0], outputs, y.shape[2], y.shape[3]};
  if (x.dtype != y.dtype || w.dtype != x.dtype) return Refusal{"images of several types"};
  const Tiling tiling(Tiles(TileOf<T>::kSize, pad, x.shape, y.shape), pixel, conv.offset);
  // In 16 bits filters keep their type: transformed ones would take eight times the memory.
  constexpr bool keeps_type = !std::is_same_v<T, float>;
  const bool transforms = keeps_type || !w.is_constant;
  if (const auto refusal = RefuseFewTiles<T>(tiling, transforms, request.rounds)) return *refusal;
  const auto winograd = std::make_shared<const Winograd<T>>(tiling, conv, is_gradient);
  Kernel kernel{"", [winograd](const KernelContext& ctx) { winograd->Run(ctx); },
                winograd->workspace_bytes()};
  kernel.packed_weights = winograd->Weights();
  kernel.packed_weights->in_each_pass = keeps_type;
  if (!w.may_be_packed) kernel = PackingItself(std::move(kernel));
  const int added = ops::AddedOperand(conv.conv.epilogue);
  if (added >= 0 && !conv.is_part && request.inputs[added].is_last_read)
    kernel.replaced_input = added;
  return kernel;
}

KernelOrRefusal MakeOfType(const PlacedConv& conv, const std::vector<int64_t>& pad, int64_t outputs,
                           bool is_gradient, const KernelRequest& request) {
  const OperandDesc& x = request.inputs[ops::Conv::kX];
  if (const auto refusal = RefuseUntiled(conv.conv.geometry, x, request.outputs[0], outputs))
    return *refusal;
  if (x.dtype == DType::kFloat)
    return MakeWinograd<float>(conv, pad, outputs, is_gradient, request);
  if (OneDnnMultipliesTiles()) return Refusal{"this processor has AMX, which multiplies faster"};
  return MakeWinograd<bfloat16>(conv, pad, outputs, is_gradient, request);
}

template <typename AnyConv>
KernelOrRefusal MakeForward(const AnyConv& any, const KernelRequest& request) {
  const PlacedConv op(any);
  return MakeOfType(op, op.conv.geometry.pad, request.inputs[ops::Conv::kW].shape[0],
                    /*is_gradient=*/false, request);
}

KernelOrRefusal MakeGradientAtInput(const ops::ConvGradData& op, const KernelRequest& request) {
  static_assert(int{ops::ConvGradData::kDy} == int{ops::Conv::kX});
  static_assert(int{ops::ConvGradData::kW} == int{ops::Conv::kW});
  std::vector<int64_t> pad = op.geometry.pad;
  for (int64_t& one : pad) one = 2 - one;
  if (std::ranges::any_of(pad, [](int64_t one) { return one < 0; }))
    return Refusal{"only padding that no window lies in completely"};
  return MakeOfType(PlacedConv(ops::Conv{op.geometry}), pad, request.outputs[0].shape[1],
                    /*is_gradient=*/true, request);
}

// Traits of convolutions that write into a larger tensor: of those that are served at all, because
// their fusion takes other kernels' place.
KernelTraits IntoTraits() {
  KernelTraits traits{.signatures = WinogradSignatures(), .is_for = IsIntoWhole};
  if (OneDnnMultipliesTiles()) traits.signatures.pop_back();
  traits.why_not = [](const Op& op, std::span<const OperandDesc>, const Device&) {
    const auto& conv = op.As<ops::Fused>()->Get<ops::Conv>(0);
    if (!AreAll(conv.geometry.kernel, 3)) return std::string("only windows of 3x3");
    return std::string(OneDnnFuses(conv.epilogue) ? "" : "no such epilogue");
  };
  return traits;
}

// These come before oneDNN's, which have the same rank, because of their names.
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Conv, "conv-by-winograd", KernelRank::kBest,
                              MakeForward<ops::Conv>,
                              {.signatures = WinogradSignatures(), .fuses = OneDnnFuses});
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Fused, "conv-into-by-winograd",
                              KernelRank::kBest, MakeForward<ops::Fused>, IntoTraits());
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::ConvGradData, "conv-grad-data-by-winograd",
                              KernelRank::kBest, MakeGradientAtInput,
                              {.signatures = WinogradSignatures()});

}  // namespace
}  // namespace caffe::cpu
