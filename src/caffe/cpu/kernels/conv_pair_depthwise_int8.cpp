// A 1x1 convolution followed by a depthwise one, in 8 bits; see conv_pair.hpp. The intermediate
// image has one byte for each number, and a word holds the bytes of four rows: so one instruction
// multiplies a column of a window, whose rows are three of the four.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "caffe/cpu/kernels/conv_pair.hpp"
#include "caffe/cpu/kernels/int8.hpp"
#include "caffe/cpu/onednn.hpp"

#ifdef CAFFE_HAS_PIXEL_SUMS
namespace caffe::cpu {
namespace {

constexpr int kSlots = 4;  // rows in a word; row r has byte r % kSlots

// The filters of a block of channels for each byte in which a window can begin: for each of a
// window's columns and each channel a word.
using FilterWords = int32_t[kSlots][kWindow][kBlock];

// The filters of a block of channels in 8 bits, as QuantizeRow() makes them.
struct BlockFilters {
  FilterWords words;
  float scales[kBlock];
  int32_t sums[kBlock];  // of a channel's numbers
};

// `w`: the filters of `count` channels, kWindowTaps weights each. The loops over a whole block are
// vectorized.
CAFFE_CPU_CLONES void PackFilters(const float* w, int64_t count, BlockFilters* packed) {
  float taps[kWindowTaps][kBlock] = {};
  for (int64_t c = 0; c < count; ++c) {
    for (int tap = 0; tap < kWindowTaps; ++tap) taps[tap][c] = w[c * kWindowTaps + tap];
  }
  float* const scales = packed->scales;
  std::fill_n(scales, kBlock, 0.0F);
  for (const auto& row : taps) {
    for (int64_t c = 0; c < kBlock; ++c) scales[c] = std::max(scales[c], std::abs(row[c]));
  }
  for (int64_t c = 0; c < kBlock; ++c) scales[c] = std::max(scales[c] / 127, kLeastScale);
  std::fill_n(packed->sums, kBlock, 0);
  int32_t numbers[kWindowTaps][kBlock];
  for (int tap = 0; tap < kWindowTaps; ++tap) {
    for (int64_t c = 0; c < kBlock; ++c) {
      const int32_t number = ToNumber<int8_t>(taps[tap][c] / scales[c]);
      packed->sums[c] += number;
      numbers[tap][c] = number & 0xFF;
    }
  }
  for (int slot = 0; slot < kSlots; ++slot) {
    for (int kw = 0; kw < kWindow; ++kw) {
      int32_t* const words = packed->words[slot][kw];
      std::fill_n(words, kBlock, 0);
      for (int kh = 0; kh < kWindow; ++kh) {
        const int shift = 8 * ((slot + kh) % kSlots);
        for (int64_t c = 0; c < kBlock; ++c) words[c] |= numbers[kh * kWindow + kw][c] << shift;
      }
    }
  }
}

// Filters and epilogues of a block of channels, which all images share.
struct NumberBlock {
  BlockFilters filters;
  float factors[kBlock], shifts[kBlock], second_factors[kBlock], second_shifts[kBlock];
  int32_t second_begins[kBlock];
  int32_t zero;  // the byte of 0
  NumberEnd first, second;

  NumberBlock(const ConvPair& op, const PairSizes& s, const KernelContext& ctx, int64_t channel)
      : zero(op.between.dtype == DType::kInt8 ? 128 : 0),
        first(op.first.epilogue, op.between.scale, RangeOf(op.between.dtype)),
        second(op.second.epilogue, ctx.output(0).scale, RangeOf(ctx.output(0).dtype)) {
    const float x_scale = ctx.input(ConvPair::kX).scale, y_scale = ctx.output(0).scale;
    const float* const bias = BiasOf(ctx, ConvPair::kBias);
    const float* const second_bias = BiasOf(ctx, op.second_bias);
    const float* const first_scales = s.panels().Scales(ctx.input(ConvPair::kW)) + channel;
    const int64_t count = s.channels_from(channel);
    PackFilters(ctx.input(op.second_w).as<const float>() + channel * kWindowTaps, count, &filters);
    for (int64_t c = 0; c < count; ++c) {
      second_begins[c] = -zero * filters.sums[c];
      factors[c] = ChannelFactor(x_scale, first_scales[c], op.between.scale);
      second_factors[c] = ChannelFactor(op.between.scale, filters.scales[c], y_scale);
      shifts[c] = bias == nullptr ? 0 : bias[channel + c] / op.between.scale / factors[c];
      second_shifts[c] =
          second_bias == nullptr ? 0 : second_bias[channel + c] / y_scale / second_factors[c];
    }
    if (s.panels().adds_128) first.begins = s.panels().Begins(ctx.input(ConvPair::kW)) + channel;
    first.factors = factors, first.shifts = shifts;
    second.begins = second_begins;
    second.factors = second_factors, second.shifts = second_shifts;
  }
};

// Computes a row of results from `words`. `filters` are those of the byte of a window's first row.
template <int kStride, int kVectors, typename Y>
CAFFE_WIDE_VECTORS void ConvolveRow(const int32_t* words, const int32_t (&filters)[kWindow][kBlock],
                                    const NumberEnd& of_block, int64_t columns, int64_t hidden,
                                    Y* y) {
  constexpr int kColumns = (kWindows - 1) * kStride + kWindow;
  using Sums = SumsOfNumbers<false>;
  const NumberEnd end = of_block;  // a copy, which stays in registers
  Unroll<kVectors>([&](auto v) CAFFE_FORCE_INLINE {
    constexpr int kChannel = v * kFloatLanes;
    FloatVector begin, weights[kWindow];
    end.Begin(kChannel, begin);
    Unroll<kWindow>([&](auto kw) CAFFE_FORCE_INLINE {
      std::memcpy(&weights[kw], filters[kw] + kChannel, sizeof(FloatVector));
    });
    for (int64_t at = 0; at < columns; at += kWindows) {
      FloatVector sums[kWindows];
      Unroll<kWindows>([&](auto i) CAFFE_FORCE_INLINE { sums[i] = begin; });
      const int32_t* const from = words + at * kStride * kBlock + kChannel;
      Unroll<kColumns>([&](auto column) CAFFE_FORCE_INLINE {
        FloatVector value;
        std::memcpy(&value, from + column * kBlock, sizeof(value));
        Unroll<kWindow>([&](auto kw) CAFFE_FORCE_INLINE {
          constexpr int kFrom = column() - kw(), kAt = kFrom / kStride;
          if constexpr (kFrom >= 0 && kFrom % kStride == 0 && kAt < kWindows)
            Sums::Add(value, weights[kw], sums[kAt]);
        });
      });
      Unroll<kWindows>([&](auto i) CAFFE_FORCE_INLINE {
        if (at + i >= columns) return;
        Sums::ToFloats(sums[i]);
        FloatVector numbers;
        end.Finish(kChannel, sums[i], numbers);
        StoreAtOnce(numbers, y + (at + i) * hidden + kChannel);
      });
    }
  });
}

// Sets a row below the image to 0.
template <int kVectors>
CAFFE_WIDE_VECTORS void ClearRow(const ByteRow& row, int64_t width) {
  for (int64_t pixel = 0; pixel < width; ++pixel) {
    Unroll<kVectors>([&](auto v)
                         CAFFE_FORCE_INLINE { row.Put(pixel, v * kFloatLanes, IntVector{}); });
  }
}

// `words`: row_numbers() of them, for four rows of the intermediate image.
template <int kVectors, typename X, typename Y>
void RunPairTask(const PairSizes& s, const KernelContext& ctx, const PairTask& task,
                 const NumberBlock& block, int32_t* words) {
  // The columns outside the image stay 0, and the rows above it.
  std::memset(words, block.zero, static_cast<size_t>(s.row_numbers()) * sizeof(int32_t));
  const char* const panel =
      ctx.input(ConvPair::kW).as<const char>() + task.channel / kBlock * s.panels().panel_bytes();
  const int64_t row_bytes = s.width * s.units * kUnitBytes;
  const char* const image =
      ctx.input(ConvPair::kX).as<const char>() + task.item * s.height * row_bytes;
  int64_t next = std::max<int64_t>(0, task.first_row * s.stride - s.pad_y);
  for (int64_t row = task.first_row; row < task.last_row; ++row) {
    const int64_t top = row * s.stride - s.pad_y;
    for (next = std::max(next, top); next < top + kWindow; ++next) {
      const ByteRow to(words + s.pad_x * kBlock, kBlock, static_cast<int>(next % kSlots),
                       block.zero);
      if (next < s.height) {
        SumPixelRow<kVectors>(TypeTag<X>{}, s, image + next * row_bytes, panel, block.first, to);
      } else {
        ClearRow<kVectors>(to, s.width);
      }
    }
    const auto& filters = block.filters.words[(top % kSlots + kSlots) % kSlots];
    Y* const y =
        ctx.output(0).as<Y>() + ((task.item * s.rows + row) * s.columns) * s.hidden + task.channel;
    if (s.stride == 1) {
      ConvolveRow<1, kVectors>(words, filters, block.second, s.columns, s.hidden, y);
    } else {
      ConvolveRow<2, kVectors>(words, filters, block.second, s.columns, s.hidden, y);
    }
  }
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

KernelOrRefusal MakePairOfNumbers(const ops::Fused& region, const KernelRequest& request) {
  const ConvPair op(region, request.inputs);
  if (std::string why = WhyNotNumbers(op, request.inputs); !why.empty()) return Refusal{why};
  if (!Is8Bit(request.outputs[0].dtype)) return Refusal{"only images in 8 bits"};
  const OperandDesc &x = request.inputs[ConvPair::kX], &y = request.outputs[0];
  const PairSizes sizes(op, x, y.shape);
  Kernel kernel;
  const PairWorkspace<NumberBlock> workspace(
      sizes, sizes.row_numbers() * static_cast<int64_t>(sizeof(int32_t)));
  kernel.workspace_bytes = workspace.bytes;
  kernel.packed_weights = PackedNumberPanels(sizes.panels(), ConvPair::kW);
  VisitNumber(x.dtype, [&]<typename X>(TypeTag<X>) {
    VisitNumber(y.dtype, [&]<typename Y>(TypeTag<Y>) {
      if constexpr (sizeof(X) == 1 && sizeof(Y) == 1)
        kernel.run = [op, sizes, workspace](const KernelContext& ctx) {
          RunPair(op, sizes, workspace, ctx,
                  [&](auto vectors, const PairTask& task, const NumberBlock& block, void* memory) {
                    RunPairTask<vectors, X, Y>(sizes, ctx, task, block,
                                               static_cast<int32_t*>(memory));
                  });
        };
    });
  });
  if (request.inputs[ConvPair::kW].may_be_packed) return kernel;
  return PackingItself(std::move(kernel));
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Fused, "conv-pair-depthwise-int8",
                              KernelRank::kBest, MakePairOfNumbers,
                              PairTraits<WhyNotNumbers>(Int8Traits()));

}  // namespace
}  // namespace caffe::cpu
#endif
