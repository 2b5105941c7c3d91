// A 1x1 convolution followed by a depthwise one, as in each block of MobileNets (Sandler et al.
// 2018, "MobileNetV2: Inverted Residuals and Linear Bottlenecks"). The intermediate image has
// several times as many channels as the input. Therefore a few of its channels are computed at a
// time, for as many rows as the windows span, and stay in the first-level cache. Images are
// channels-last.
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <type_traits>
#include <vector>

#include "caffe/cpu/kernels/conv_descs.hpp"
#include "caffe/cpu/kernels/int8.hpp"
#include "caffe/cpu/kernels/pixel_sums.hpp"
#include "caffe/cpu/kernels/weight_panels.hpp"
#include "caffe/cpu/onednn.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/cpu/processor.hpp"
#include "caffe/ops/fused.hpp"
#include "caffe/ops/kernel.hpp"

#ifdef CAFFE_HAS_PIXEL_SUMS
namespace caffe::cpu {
namespace {

// The region Conv(x, w, bias), Conv(w', bias').
struct ConvPair {
  enum Input { kX, kW, kBias };
  ops::Conv first, second;
  int second_w, second_bias;  // -1: absent
  TensorDesc between;

  ConvPair(const ops::Fused& region, std::span<const OperandDesc> inputs)
      : first(region.Get<ops::Conv>(0)),
        second(region.Get<ops::Conv>(1)),
        second_w(region.InputOf(1, ops::Conv::kW)),
        second_bias(region.InputOf(1, ops::Conv::kBias)),
        between(region.InnerDescs(std::vector<TensorDesc>(inputs.begin(), inputs.end()), {})[0]) {}
};

constexpr int kWindow = 3;  // both extents of the depthwise windows
// Results of floats that take more bytes than this are prefetched; smaller types gain nothing.
constexpr size_t kCacheBytes = 8 << 20;
constexpr int kWindows = 7;  // windows of a row that are computed together

struct PairSizes {
  int64_t channels, hidden, height, width, rows, columns, stride, pad_y, pad_x;
  int64_t units;  // units of 4 bytes in a pixel of x
  int64_t items, threads, blocks, bands;

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
        blocks(BlocksOf(hidden)) {
    // Each band also computes the rows next to it, which its neighbours compute, too. So there are
    // only as many bands as are needed to give threads equal parts.
    bands = std::min(threads / std::gcd(threads, items * blocks), rows);
  }

  int64_t tasks() const { return items * blocks * bands; }
  // Columns of a row of the intermediate image, including all columns that a row's last windows
  // read.
  int64_t padded_width() const {
    const int64_t made = (columns + kWindows - 1) / kWindows * kWindows;
    return std::max(width + 2 * pad_x, (made - 1) * stride + kWindow);
  }
  int64_t row_floats() const { return padded_width() * kBlock; }
  WeightPanels panels() const { return {hidden, channels, 1, units * kUnitBytes / channels}; }
  size_t ring_bytes() const {
    return static_cast<size_t>(threads * kWindow * row_floats()) * sizeof(float);
  }
};

// Three rows; rows outside the image are null.
struct WindowRows {
  const float* row[kWindow];
  bool is_far = false;  // the results do not fit the caches
};

// Computes a row of results. `filters` has 9 taps with kBlock weights each.
template <int kStride, int kVectors, typename Y, typename End>
CAFFE_WIDE_VECTORS void ConvolveRow(const WindowRows& rows, const float* filters, const End& end,
                                    int64_t columns, int64_t hidden, Y* y) {
  constexpr int kColumns = (kWindows - 1) * kStride + kWindow;
  Unroll<kVectors>([&](auto v) CAFFE_FORCE_INLINE {
    constexpr int kChannel = v * kFloatLanes;
    FloatVector begin;
    end.Begin(kChannel, begin);
    for (int64_t at = 0; at < columns; at += kWindows) {
      FloatVector sums[kWindows];
      Unroll<kWindows>([&](auto i) CAFFE_FORCE_INLINE {
        sums[i] = begin;
        // Prefetches the next results, which are too far apart for the hardware prefetcher.
        if (rows.is_far) __builtin_prefetch(y + (at + kWindows + i) * hidden + kChannel, 1);
      });
      for (int kh = 0; kh < kWindow; ++kh) {
        if (rows.row[kh] == nullptr) continue;
        const float* from = rows.row[kh] + at * kStride * kBlock + kChannel;
        FloatVector weights[kWindow];
        Unroll<kWindow>([&](auto kw) CAFFE_FORCE_INLINE {
          Load(filters + (kh * kWindow + kw) * kBlock + kChannel, weights[kw]);
        });
        Unroll<kColumns>([&](auto column) CAFFE_FORCE_INLINE {
          FloatVector value;
          Load(from + column * kBlock, value);
          Unroll<kWindow>([&](auto kw) CAFFE_FORCE_INLINE {
            constexpr int kFrom = column() - kw(), kAt = kFrom / kStride;
            if constexpr (kFrom >= 0 && kFrom % kStride == 0 && kAt < kWindows)
              sums[kAt] += value * weights[kw];
          });
        });
      }
      Unroll<kWindows>([&](auto i) CAFFE_FORCE_INLINE {
        if (at + i >= columns) return;
        FloatVector values;
        end.Finish(kChannel, sums[i], values);
        StoreAtOnce(values, y + (at + i) * hidden + kChannel);
      });
    }
  });
}

// A task: some rows of a block of channels of an image.
struct PairTask {
  int64_t item, channel, first_row, last_row;

  PairTask(const PairSizes& s, int64_t number)
      : item(number / (s.blocks * s.bands)),
        channel(number / s.bands % s.blocks * kBlock),
        first_row(s.rows * (number % s.bands) / s.bands),
        last_row(s.rows * (number % s.bands + 1) / s.bands) {}
};

// Stores the filters of a block's channels in the order of ConvolveRow().
template <typename W>
void SpreadFilters(const W* filters, int64_t count, float* to) {
  constexpr int kTaps = kWindow * kWindow;
  for (int64_t c = 0; c < count; ++c) {
    for (int tap = 0; tap < kTaps; ++tap)
      to[tap * kBlock + c] = static_cast<float>(filters[c * kTaps + tap]);
  }
}

// As QuantizeRow(), for filters that SpreadFilters() stored; the numbers stay floats.
CAFFE_CPU_CLONES void QuantizeFilters(float* filters, float* scales) {
  constexpr int kTaps = kWindow * kWindow;
  std::fill_n(scales, kBlock, 0.0F);
  for (int tap = 0; tap < kTaps; ++tap) {
    for (int64_t c = 0; c < kBlock; ++c)
      scales[c] = std::max(scales[c], std::abs(filters[tap * kBlock + c]));
  }
  for (int64_t c = 0; c < kBlock; ++c) scales[c] = std::max(scales[c] / 127, kLeastScale);
  for (int tap = 0; tap < kTaps; ++tap) {
    for (int64_t c = 0; c < kBlock; ++c) {
      float& weight = filters[tap * kBlock + c];
      weight = std::nearbyint(weight / scales[c]);
    }
  }
}

// Filters and epilogues of a block of channels, in float or bfloat16.
template <typename X>
struct FloatBlock {
  float filters[kWindow * kWindow * kBlock];
  SumEnd first, second;

  FloatBlock(const ConvPair& op, const PairSizes&, const KernelContext& ctx, int64_t channel,
             int64_t count)
      : first(SumEnd(op.first.epilogue, ctx, ConvPair::kBias).From(channel)),
        second(SumEnd(op.second.epilogue, ctx, op.second_bias).From(channel)) {
    SpreadFilters(ctx.input(op.second_w).as<const X>() + channel * kWindow * kWindow, count,
                  filters);
  }
};

// The same in 8 bits. Intermediate numbers are stored as floats. The second convolution's sums have
// at most 20 bits, so they are exact.
struct NumberBlock {
  float filters[kWindow * kWindow * kBlock] = {};
  float factors[kBlock], shifts[kBlock], second_factors[kBlock], second_shifts[kBlock];
  NumberEnd first, second;

  NumberBlock(const ConvPair& op, const PairSizes& s, const KernelContext& ctx, int64_t channel,
              int64_t count)
      : first(op.first.epilogue, op.between.scale, RangeOf(op.between.dtype)),
        second(op.second.epilogue, ctx.output(0).scale, RangeOf(ctx.output(0).dtype)) {
    SpreadFilters(ctx.input(op.second_w).as<const float>() + channel * kWindow * kWindow, count,
                  filters);
    float scales[kBlock];
    QuantizeFilters(filters, scales);
    const float x_scale = ctx.input(ConvPair::kX).scale, y_scale = ctx.output(0).scale;
    const float* const bias = BiasOf(ctx, ConvPair::kBias);
    const float* const second_bias = BiasOf(ctx, op.second_bias);
    const float* const first_scales = s.panels().Scales(ctx.input(ConvPair::kW)) + channel;
    for (int64_t c = 0; c < count; ++c) {
      factors[c] = ChannelFactor(x_scale, first_scales[c], op.between.scale);
      second_factors[c] = ChannelFactor(op.between.scale, scales[c], y_scale);
      shifts[c] = bias == nullptr ? 0 : bias[channel + c] / op.between.scale / factors[c];
      second_shifts[c] =
          second_bias == nullptr ? 0 : second_bias[channel + c] / y_scale / second_factors[c];
    }
    first.begins = s.panels().Begins(ctx.input(ConvPair::kW)) + channel;
    first.factors = factors, first.shifts = shifts;
    second.factors = second_factors, second.shifts = second_shifts;
  }
};

template <typename X>
using PairBlock = std::conditional_t<sizeof(X) == 1, NumberBlock, FloatBlock<X>>;

// `ring` has kWindow rows of the intermediate image, each with padded columns.
template <int kVectors, typename X, typename Y>
void RunPairTask(const ConvPair& op, const PairSizes& s, const KernelContext& ctx,
                 const PairTask& task, float* ring) {
  const PairBlock<X> block(op, s, ctx, task.channel, kVectors * kFloatLanes);
  std::fill_n(ring, kWindow * s.row_floats(), 0.0F);  // the columns outside the image stay 0
  const char* const panel =
      ctx.input(ConvPair::kW).as<const char>() + task.channel / kBlock * s.panels().panel_bytes();
  const auto* const image = ctx.input(ConvPair::kX).as<const char>() +
                            task.item * s.height * s.width * s.units * kUnitBytes;
  int64_t next = std::max<int64_t>(0, task.first_row * s.stride - s.pad_y);
  for (int64_t row = task.first_row; row < task.last_row; ++row) {
    const int64_t top = row * s.stride - s.pad_y;
    const int64_t bottom = std::min(top + kWindow, s.height);
    for (next = std::max(next, top); next < bottom; ++next) {
      SumRow<kVectors>(
          TypeTag<X>{}, {image + next * s.width * s.units * kUnitBytes, s.width, s.units}, panel,
          block.first, ring + next % kWindow * s.row_floats() + s.pad_x * kBlock, kBlock);
    }
    WindowRows rows;
    rows.is_far = sizeof(Y) == sizeof(float) && ctx.output(0).bytes() > kCacheBytes;
    for (int kh = 0; kh < kWindow; ++kh) {
      const bool is_inside = top + kh >= 0 && top + kh < s.height;
      rows.row[kh] = is_inside ? ring + (top + kh) % kWindow * s.row_floats() : nullptr;
    }
    Y* const y =
        ctx.output(0).as<Y>() + ((task.item * s.rows + row) * s.columns) * s.hidden + task.channel;
    if (s.stride == 1) {
      ConvolveRow<1, kVectors>(rows, block.filters, block.second, s.columns, s.hidden, y);
    } else {
      ConvolveRow<2, kVectors>(rows, block.filters, block.second, s.columns, s.hidden, y);
    }
  }
}

template <typename X, typename Y>
void RunPair(const ConvPair& op, const PairSizes& sizes, const KernelContext& ctx) {
  ParallelFor(sizes.threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t thread = begin; thread < end; ++thread) {
      float* const ring =
          static_cast<float*>(ctx.workspace) + thread * kWindow * sizes.row_floats();
      const int64_t last = sizes.tasks() * (thread + 1) / sizes.threads;
      for (int64_t number = sizes.tasks() * thread / sizes.threads; number < last; ++number) {
        const PairTask task(sizes, number);
        if (sizes.hidden - task.channel >= kBlock) {
          RunPairTask<kBlockVectors, X, Y>(op, sizes, ctx, task, ring);
        } else {
          RunPairTask<1, X, Y>(op, sizes, ctx, task, ring);
        }
      }
    }
  });
}

std::string WhyNotPair(const ConvPair& op, std::span<const OperandDesc> inputs) {
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
  if (!HasWideVectors()) return "this processor has no AVX-512";
  const std::optional<Refusal> large = RefuseLarge(second, op.between.shape);
  return large ? large->reason : "";
}

std::string WhyNotNumbers(const ConvPair& op, std::span<const OperandDesc> inputs) {
  const OperandDesc& x = inputs[ConvPair::kX];
  if (!Is8Bit(x.dtype) || !Is8Bit(op.between.dtype)) return "only images in 8 bits";
  if (!IsOneLimit(op.first.epilogue) || !IsOneLimit(op.second.epilogue))
    return "no epilogue but a ReLU or a limit";
  if (x.shape[1] > ops::kMostSummands) return "sums of more than 32 bits";
  if (!OneDnnMultiplies8Bits()) return "this processor has no instruction for 8 bits";
  return WhyNotPair(op, inputs);
}

std::string WhyNotFloats(const ConvPair& op, std::span<const OperandDesc> inputs) {
  if (op.between.dtype != inputs[ConvPair::kX].dtype) return "images of several types";
  if (!OneDnnFuses(op.first.epilogue) || !OneDnnFuses(op.second.epilogue))
    return "no epilogue but a ReLU";
  return WhyNotPair(op, inputs);
}

bool IsPair(const Op& op) {
  return op.As<ops::Fused>()->Is({ops::Conv::kName, ops::Conv::kName});
}

template <std::string (*kWhyNot)(const ConvPair&, std::span<const OperandDesc>)>
KernelTraits PairTraits(KernelTraits traits) {
  traits.is_for = IsPair;
  traits.why_not = [](const Op& op, std::span<const OperandDesc> inputs, const Device&) {
    return kWhyNot(ConvPair(*op.As<ops::Fused>(), inputs), inputs);
  };
  return traits;
}

KernelOrRefusal MakePairOfNumbers(const ops::Fused& region, const KernelRequest& request) {
  const ConvPair op(region, request.inputs);
  if (std::string why = WhyNotNumbers(op, request.inputs); !why.empty()) return Refusal{why};
  if (!Is8Bit(request.outputs[0].dtype)) return Refusal{"only images in 8 bits"};
  const OperandDesc &x = request.inputs[ConvPair::kX], &y = request.outputs[0];
  const PairSizes sizes(op, x, y.shape);
  Kernel kernel;
  kernel.workspace_bytes = sizes.ring_bytes();
  kernel.packed_weights = PackedNumberPanels(sizes.panels(), ConvPair::kW, x.dtype == DType::kInt8);
  VisitNumber(x.dtype, [&]<typename X>(TypeTag<X>) {
    VisitNumber(y.dtype, [&]<typename Y>(TypeTag<Y>) {
      if constexpr (sizeof(X) == 1 && sizeof(Y) == 1)
        kernel.run = [op, sizes](const KernelContext& ctx) { RunPair<X, Y>(op, sizes, ctx); };
    });
  });
  if (request.inputs[ConvPair::kW].may_be_packed) return kernel;
  return PackingItself(std::move(kernel));
}

KernelOrRefusal MakeConvPairDepthwise(const ops::Fused& region, const KernelRequest& request) {
  const ConvPair op(region, request.inputs);
  if (std::string why = WhyNotFloats(op, request.inputs); !why.empty()) return Refusal{why};
  const OperandDesc &x = request.inputs[ConvPair::kX], &y = request.outputs[0];
  if (y.dtype != x.dtype) return Refusal{"images of several types"};
  const PairSizes sizes(op, x, y.shape);
  Kernel kernel;
  kernel.workspace_bytes = sizes.ring_bytes();
  const auto make = [&]<typename T>(TypeTag<T>) {
    kernel.run = [op, sizes](const KernelContext& ctx) { RunPair<T, T>(op, sizes, ctx); };
    kernel.packed_weights = PackedPanels<T>(sizes.panels(), ConvPair::kW);
  };
  x.dtype == DType::kBFloat16 ? make(TypeTag<bfloat16>{}) : make(TypeTag<float>{});
  if (request.inputs[ConvPair::kW].may_be_packed) return kernel;
  return PackingItself(std::move(kernel));
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Fused, "conv-pair-depthwise",
                              KernelRank::kBest, MakeConvPairDepthwise,
                              PairTraits<WhyNotFloats>({.signatures = OneDnnSignatures()}));
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Fused, "conv-pair-depthwise-int8",
                              KernelRank::kBest, MakePairOfNumbers,
                              PairTraits<WhyNotNumbers>(Int8Traits()));

}  // namespace
}  // namespace caffe::cpu
#endif
