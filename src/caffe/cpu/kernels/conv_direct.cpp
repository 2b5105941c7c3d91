// Convolutions as sums of products, without rearranging the image: in channels-last images the
// pixels that a row of a window reads are contiguous. In bfloat16 and 8 bits this is as fast as
// oneDNN's kernels without AMX, and faster for 1x1 windows on small images. It can also write
// results between the channels of others, which oneDNN cannot.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "caffe/cpu/kernels/block_ends.hpp"
#include "caffe/cpu/kernels/conv_descs.hpp"
#include "caffe/cpu/kernels/direct_sizes.hpp"
#include "caffe/cpu/kernels/int8.hpp"
#include "caffe/cpu/kernels/pixel_sums.hpp"
#include "caffe/cpu/kernels/placed_conv.hpp"
#include "caffe/cpu/kernels/tile_products.hpp"
#include "caffe/cpu/kernels/weight_panels.hpp"
#include "caffe/cpu/onednn.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/cpu/processor.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/fused.hpp"
#include "caffe/ops/kernel.hpp"

#ifdef CAFFE_HAS_PIXEL_SUMS
namespace caffe::cpu {
namespace {

using ops::Conv;

constexpr int64_t kMostRuns = 64;
// Images of up to this size stay in the second-level cache together with the weights; for larger
// ones oneDNN's 1x1 kernels are as fast.
constexpr int64_t kMostBytes = 256 << 10;
// Addresses at this distance compete for the same lines of the first-level cache.
constexpr int64_t kAliasBytes = 4096;

// Contiguous runs of memory that the pixels of a result row read; `step` bytes from pixel to pixel.
struct PixelRuns {
  std::array<const char*, kMostRuns> starts;
  int64_t count, units, step;
};

// Computes the sums of kCount pixels, kBlockVectors apart.
using TileSums = void (*)(const PixelRuns& x, int64_t first, const char* panel, const float* begins,
                          FloatVector* to);

template <typename Sums, int kCount, int kVectors>
CAFFE_WIDE_VECTORS void SumTile(const PixelRuns& x, int64_t first, const char* panel,
                                const float* begins, FloatVector* to) {
  FloatVector sums[kCount][kVectors];
  Unroll<kVectors>([&](auto v) CAFFE_FORCE_INLINE {
    FloatVector begin;
    Load(begins + v * kFloatLanes, begin);
    Unroll<kCount>([&](auto pixel) CAFFE_FORCE_INLINE { sums[pixel][v] = begin; });
  });
  for (int64_t run = 0; run < x.count; ++run) {
    AddProducts<Sums>(x.starts[run] + first * x.step, x.step, x.units, panel, sums);
    panel += x.units * kUnitBytes * kBlock;
  }
  Unroll<kCount>([&](auto pixel) CAFFE_FORCE_INLINE {
    Unroll<kVectors>([&](auto v)
                         CAFFE_FORCE_INLINE { to[pixel * kBlockVectors + v] = sums[pixel][v]; });
  });
}

// Numbers of pixels whose sums are held in registers together: image rows are cut into these.
constexpr std::array<int, 7> kTileSizes = {kPixels, 10, 7, 5, 3, 2, 1};

template <typename Sums>
TileSums TileSumsOf(size_t size, bool is_half) {
  static constexpr auto kSums = []<size_t... i>(std::index_sequence<i...>) {
    return std::array<std::array<TileSums, 2>, kTileSizes.size()>{
        {{SumTile<Sums, kTileSizes[i], kBlockVectors>, SumTile<Sums, kTileSizes[i], 1>}...}};
  }
  (std::make_index_sequence<kTileSizes.size()>{});
  return kSums[size][is_half ? 1 : 0];
}

// Computes a row of y, or a part of one, for a block of channels.
template <typename Sums, typename Channels, typename Y>
void ComputeRow(const PixelRuns& x, int64_t width, const char* panel, const Channels& channels,
                int64_t lanes, const typename Channels::Added* added, int64_t step, Y* y) {
  FloatVector sums[kPixels * kBlockVectors];
  int64_t first = 0;
  for (size_t size = 0; first < width;) {
    const int count = kTileSizes[size];
    if (first + count > width) {
      ++size;
      continue;
    }
    // Prefetches the next results, which are too far apart for the hardware prefetcher.
    for (int64_t i = 0; i < count; ++i) __builtin_prefetch(y + (first + kPixels + i) * step, 1);
    TileSumsOf<Sums>(size, lanes <= kFloatLanes)(x, first, panel, channels.begins, sums);
    FinishTile<Sums>(sums, count, lanes, channels.end,
                     added == nullptr ? nullptr : added + first * step, step, y + first * step);
    first += count;
  }
}

// Runs one thread's tasks, from `task` to `last`.
template <typename Sums, typename Channels, typename Y>
class DirectTasks {
 public:
  DirectTasks(const Conv& op, const DirectSizes& sizes, const KernelContext& ctx, char* copy)
      : op_(op), s_(sizes), ctx_(ctx), copy_(copy) {
    const int added = ops::AddedOperand(op.epilogue);
    if (added >= 0) added_ = ctx.input(added).as<const typename Channels::Added>();
    runs_.count = s_.runs();
    runs_.units = s_.run_bytes() / kUnitBytes;
    runs_.step = s_.stride_x * s_.pixel_bytes;
  }

  void Run(int64_t task, int64_t last) {
    const WeightPanels panels = s_.panels();
    for (int64_t chunk = -1; task < last; ++task) {
      const int64_t channel = task % s_.blocks * kBlock;
      const int64_t lanes = std::min(kBlock, s_.outputs - channel);
      const Channels channels(op_, panels, ctx_, channel, lanes);
      const bool is_new = chunk != task / s_.blocks;
      chunk = task / s_.blocks;
      if (s_.is_flat) {
        RunPixels(chunk, channel, lanes, channels);
      } else {
        RunRows(chunk, is_new, channel, lanes, channels);
      }
    }
  }

 private:
  const char* Panel(int64_t channel) const {
    return ctx_.input(Conv::kW).as<const char>() + channel / kBlock * s_.panels().panel_bytes();
  }
  // Computes results of `width` pixels; `pixel` is the first one, counted over all images.
  void Compute(int64_t pixel, int64_t width, int64_t channel, int64_t lanes,
               const Channels& channels) {
    const int64_t at = pixel * s_.whole + s_.offset + channel;
    ComputeRow<Sums>(runs_, width, Panel(channel), channels, lanes,
                     added_ == nullptr ? nullptr : added_ + at, s_.whole,
                     ctx_.output(0).as<Y>() + at);
  }
  void RunPixels(int64_t chunk, int64_t channel, int64_t lanes, const Channels& channels) {
    const int64_t first = s_.tiles() * chunk / s_.chunks * kPixels;
    const int64_t last = std::min(s_.tiles() * (chunk + 1) / s_.chunks * kPixels, s_.pixels());
    runs_.starts[0] = ctx_.input(Conv::kX).as<const char>() + first * s_.pixel_bytes;
    Compute(first, last - first, channel, lanes, channels);
  }
  void RunRows(int64_t chunk, bool is_new, int64_t channel, int64_t lanes,
               const Channels& channels) {
    const int64_t item = chunk / s_.chunks_of_item, part = chunk % s_.chunks_of_item;
    const int64_t first = s_.rows * part / s_.chunks_of_item;
    const int64_t last = s_.rows * (part + 1) / s_.chunks_of_item;
    const char* image = ctx_.input(Conv::kX).as<const char>() + item * s_.item_bytes();
    const int64_t top = first * s_.stride_y - s_.pad_y;
    if (s_.is_padded && is_new) CopyPaddedRows(s_, image, top, s_.chunk_rows, copy_);
    image = s_.is_padded ? copy_ : image + top * s_.row_bytes();
    for (int64_t row = first; row < last; ++row) {
      for (int64_t run = 0; run < runs_.count; ++run) {
        const int64_t below = run / s_.runs_of_row() * s_.gap_y + (row - first) * s_.stride_y;
        runs_.starts[run] =
            image + below * s_.row_bytes() + run % s_.runs_of_row() * s_.gap_x * s_.pixel_bytes;
      }
      Compute((item * s_.rows + row) * s_.columns, s_.columns, channel, lanes, channels);
    }
  }

  const Conv& op_;
  const DirectSizes& s_;
  const KernelContext& ctx_;
  char* copy_;
  const typename Channels::Added* added_ = nullptr;
  PixelRuns runs_ = {};
};

template <typename Sums, typename Channels, typename Y>
void RunDirect(const Conv& op, const DirectSizes& sizes, const KernelContext& ctx) {
  ParallelFor(sizes.threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t thread = begin; thread < end; ++thread) {
      char* const copy = static_cast<char*>(ctx.workspace) + thread * sizes.copy_bytes();
      DirectTasks<Sums, Channels, Y>(op, sizes, ctx, copy)
          .Run(sizes.tasks() * thread / sizes.threads,
               sizes.tasks() * (thread + 1) / sizes.threads);
    }
  });
}

std::optional<Refusal> RefuseUnlessDirect(const Conv& op, const KernelRequest& request) {
  const OperandDesc &x = request.inputs[Conv::kX], &w = request.inputs[Conv::kW];
  const ops::ConvGeometry& g = op.geometry;
  if (g.spatial_axes() != 2 || g.group != 1) return Refusal{"only images, without groups"};
  if (x.layout != Layout::kChannelsLast || request.outputs[0].layout != Layout::kChannelsLast)
    return Refusal{"only images with channels last"};
  if (request.outputs[0].count() == 0 || w.count() == 0) return Refusal{"an empty batch"};
  if (x.shape[1] * static_cast<int64_t>(SizeOf(x.dtype)) % kUnitBytes != 0)
    return Refusal{"pixels that are not a multiple of 4 bytes"};
  if (g.kernel[0] * g.kernel[1] > kMostRuns) return Refusal{"more than 64 taps"};
  if (x.dtype != DType::kFloat && MayMultiplyTiles())
    return Refusal{"this processor has AMX, for which conv-by-tiles is made"};
  return RefuseLarge(g, x.shape);
}

// True if oneDNN's kernels are not faster.
bool IsBest(const Conv& op, const KernelRequest& request) {
  const ops::ConvGeometry& g = op.geometry;
  const OperandDesc& x = request.inputs[Conv::kX];
  const int64_t pixel_bytes = x.shape[1] * static_cast<int64_t>(SizeOf(x.dtype));
  return AreAll(g.kernel, 1) && AreAll(g.stride, 1) && AreAll(g.pad, 0) &&
         request.outputs[0].shape[1] % kBlock == 0 && pixel_bytes % kAliasBytes != 0 &&
         static_cast<int64_t>(x.bytes()) <= kMostBytes;
}

template <typename Sums, typename Channels, typename Y>
Kernel DirectKernel(const PlacedConv& op, const KernelRequest& request, const DirectSizes& sizes,
                    PackedOperand weights) {
  Kernel kernel;
  kernel.run = [op, sizes](const KernelContext& ctx) {
    op.CopyWhole(ctx);
    RunDirect<Sums, Channels, Y>(op.conv, sizes, ctx);
  };
  kernel.workspace_bytes = static_cast<size_t>(sizes.threads) * sizes.copy_bytes();
  kernel.packed_weights = std::move(weights);
  const int added = ops::AddedOperand(op.conv.epilogue);
  if (added >= 0 && request.inputs[added].is_last_read &&
      request.inputs[added].bytes() == request.outputs[0].bytes()) {
    kernel.replaced_input = added;
  }
  if (request.inputs[Conv::kW].may_be_packed) return kernel;
  return PackingItself(std::move(kernel));
}

template <typename AnyConv>
KernelOrRefusal MakeDirect(const AnyConv& any, const KernelRequest& request) {
  const PlacedConv op(any);
  if (const auto refusal = RefuseUnlessDirect(op.conv, request)) return *refusal;
  const OperandDesc &x = request.inputs[Conv::kX], &y = request.outputs[0];
  if (y.dtype != x.dtype) return Refusal{"images of several types"};
  if (!op.is_part && !IsBest(op.conv, request)) return Refusal{"oneDNN is as fast"};
  const DirectSizes sizes(op.conv, x, request.inputs[Conv::kW], y.shape, op.offset);
  const WeightPanels panels = sizes.panels();
  if (x.dtype == DType::kFloat) {
    return DirectKernel<SumsOfFloats, FloatChannels<float>, float>(
        op, request, sizes, PackedPanels<float>(panels, Conv::kW));
  }
  return DirectKernel<SumsOfPairs, FloatChannels<bfloat16>, bfloat16>(
      op, request, sizes, PackedPanels<bfloat16>(panels, Conv::kW));
}

template <typename AnyConv>
KernelOrRefusal MakeDirectOfNumbers(const AnyConv& any, const KernelRequest& request) {
  const PlacedConv op(any);
  const ops::Epilogue& epilogue = op.conv.epilogue;
  if (const auto refusal = RefuseUnlessDirect(op.conv, request)) return *refusal;
  const OperandDesc &x = request.inputs[Conv::kX], &w = request.inputs[Conv::kW];
  const int added = ops::AddedOperand(epilogue);
  if (!Is8Bit(x.dtype) || (added >= 0 && !Is8Bit(request.inputs[added].dtype)))
    return Refusal{"only images in 8 bits"};
  if (!IsOneLimit(LimitOf(epilogue))) return Refusal{"no epilogue but a sum and a ReLU or a limit"};
  if (w.shape.count(1) > ops::kMostSummands) return Refusal{"sums of more than 32 bits"};
  if (!op.is_part && !IsBest(op.conv, request)) return Refusal{"oneDNN is as fast"};
  const DirectSizes sizes(op.conv, x, w, request.outputs[0].shape, op.offset);
  const bool is_signed = x.dtype == DType::kInt8;
  const bool adds_signed = added >= 0 && request.inputs[added].dtype == DType::kInt8;
  Kernel kernel;
  const auto make = [&]<typename X, typename A>(TypeTag<X>, TypeTag<A>) {
    VisitNumber(request.outputs[0].dtype, [&]<typename Y>(TypeTag<Y>) {
      kernel = DirectKernel<SumsOfNumbers<std::is_signed_v<X>>, NumberChannels<A>, Y>(
          op, request, sizes, PackedNumberPanels(sizes.panels(), Conv::kW));
    });
  };
  const auto make_of = [&]<typename X>(TypeTag<X> tag) {
    adds_signed ? make(tag, TypeTag<int8_t>{}) : make(tag, TypeTag<uint8_t>{});
  };
  is_signed ? make_of(TypeTag<int8_t>{}) : make_of(TypeTag<uint8_t>{});
  return kernel;
}

// For processors that lack the instructions: a type that no op has, because passes look at types.
KernelTraits NoTraits() {
  return {.signatures = {{DType::kUInt8, DType::kFloat}}};
}
KernelTraits DirectTraits() {
  if (!HasWideVectors() || !MultipliesBFloat16() || MayMultiplyTiles()) return NoTraits();
  return {.signatures = {{DType::kBFloat16, DType::kFloat}}, .fuses = OneDnnFuses};
}
// With float images, which oneDNN multiplies as fast elsewhere.
KernelTraits DirectPartTraits() {
  KernelTraits traits = DirectTraits();
  if (HasWideVectors()) traits.signatures.push_back({DType::kFloat, DType::kFloat});
  traits.fuses = OneDnnFuses;
  return traits;
}
KernelTraits DirectNumberTraits() {
  if (!HasWideVectors() || !OneDnnMultiplies8Bits() || MayMultiplyTiles()) return NoTraits();
  return Int8Traits(FusesNumbers);
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, Conv, "conv-direct", KernelRank::kBest,
                              MakeDirect<Conv>, DirectTraits());
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, Conv, "conv-direct-int8", KernelRank::kBest,
                              MakeDirectOfNumbers<Conv>, DirectNumberTraits());
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Fused, "conv-into-direct", KernelRank::kBest,
                              MakeDirect<ops::Fused>, IntoWholeTraits(DirectPartTraits()));
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Fused, "conv-into-direct-int8",
                              KernelRank::kBest, MakeDirectOfNumbers<ops::Fused>,
                              IntoWholeTraits(DirectNumberTraits()));

}  // namespace
}  // namespace caffe::cpu
#endif
