// A 1x1 convolution followed by a depthwise one, in float and bfloat16; see conv_pair.hpp.
#include <algorithm>
#include <optional>
#include <utility>

#include "caffe/cpu/kernels/conv_pair.hpp"
#include "caffe/cpu/onednn.hpp"

#ifdef CAFFE_HAS_PIXEL_SUMS
namespace caffe::cpu {
namespace {

// Results of floats that take more bytes than this are prefetched; smaller types gain nothing.
constexpr size_t kCacheBytes = 8 << 20;

// Three rows; rows outside the image are null.
struct WindowRows {
  const float* row[kWindow];
  bool is_far = false;  // the results do not fit the caches
};

// Computes a row of results. `filters` has 9 taps with kBlock weights each.
template <int kStride, int kVectors, typename Y>
CAFFE_WIDE_VECTORS void ConvolveRow(const WindowRows& rows, const float* filters,
                                    const SumEnd& of_block, int64_t columns, int64_t hidden, Y* y) {
  const SumEnd end = of_block;  // a copy, which stays in registers
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

// Stores the filters of a block's channels in the order of ConvolveRow().
template <typename W>
void SpreadFilters(const W* filters, int64_t count, float* to) {
  for (int64_t c = 0; c < count; ++c) {
    for (int tap = 0; tap < kWindowTaps; ++tap)
      to[tap * kBlock + c] = static_cast<float>(filters[c * kWindowTaps + tap]);
  }
}

// Filters and epilogues of a block of channels, which all images share.
template <typename X>
struct FloatBlock {
  float filters[kWindowTaps * kBlock];
  SumEnd first, second;

  FloatBlock(const ConvPair& op, const PairSizes& s, const KernelContext& ctx, int64_t channel)
      : first(SumEnd(op.first.epilogue, ctx, ConvPair::kBias).From(channel)),
        second(SumEnd(op.second.epilogue, ctx, op.second_bias).From(channel)) {
    SpreadFilters(ctx.input(op.second_w).as<const X>() + channel * kWindowTaps,
                  s.channels_from(channel), filters);
  }
};

// `ring` has kWindow rows of the intermediate image, each with padded columns.
template <int kVectors, typename T>
void RunPairTask(const PairSizes& s, const KernelContext& ctx, const PairTask& task,
                 const FloatBlock<T>& block, float* ring) {
  std::fill_n(ring, kWindow * s.row_numbers(), 0.0F);  // the columns outside the image stay 0
  const char* const panel =
      ctx.input(ConvPair::kW).as<const char>() + task.channel / kBlock * s.panels().panel_bytes();
  const auto* const image = ctx.input(ConvPair::kX).as<const char>() +
                            task.item * s.height * s.width * s.units * kUnitBytes;
  int64_t next = std::max<int64_t>(0, task.first_row * s.stride - s.pad_y);
  for (int64_t row = task.first_row; row < task.last_row; ++row) {
    const int64_t top = row * s.stride - s.pad_y;
    const int64_t bottom = std::min(top + kWindow, s.height);
    for (next = std::max(next, top); next < bottom; ++next) {
      const FloatRow to = {ring + next % kWindow * s.row_numbers() + s.pad_x * kBlock, kBlock};
      SumPixelRow<kVectors>(TypeTag<T>{}, s, image + next * s.width * s.units * kUnitBytes, panel,
                            block.first, to);
    }
    WindowRows rows;
    rows.is_far = sizeof(T) == sizeof(float) && ctx.output(0).bytes() > kCacheBytes;
    for (int kh = 0; kh < kWindow; ++kh) {
      const bool is_inside = top + kh >= 0 && top + kh < s.height;
      rows.row[kh] = is_inside ? ring + (top + kh) % kWindow * s.row_numbers() : nullptr;
    }
    T* const y =
        ctx.output(0).as<T>() + ((task.item * s.rows + row) * s.columns) * s.hidden + task.channel;
    if (s.stride == 1) {
      ConvolveRow<1, kVectors>(rows, block.filters, block.second, s.columns, s.hidden, y);
    } else {
      ConvolveRow<2, kVectors>(rows, block.filters, block.second, s.columns, s.hidden, y);
    }
  }
}

std::string WhyNotFloats(const ConvPair& op, std::span<const OperandDesc> inputs) {
  if (op.between.dtype != inputs[ConvPair::kX].dtype) return "images of several types";
  if (!SumEnd::Serves(op.first.epilogue) || !SumEnd::Serves(op.second.epilogue))
    return "no epilogue but a ReLU";
  return WhyNotPair(op, inputs);
}

KernelOrRefusal MakeConvPairDepthwise(const ops::Fused& region, const KernelRequest& request) {
  const ConvPair op(region, request.inputs);
  if (std::string why = WhyNotFloats(op, request.inputs); !why.empty()) return Refusal{why};
  const OperandDesc &x = request.inputs[ConvPair::kX], &y = request.outputs[0];
  if (y.dtype != x.dtype) return Refusal{"images of several types"};
  const PairSizes sizes(op, x, y.shape);
  Kernel kernel;
  const auto make = [&]<typename T>(TypeTag<T>) {
    const PairWorkspace<FloatBlock<T>> workspace(
        sizes, kWindow * sizes.row_numbers() * static_cast<int64_t>(sizeof(float)));
    kernel.workspace_bytes = workspace.bytes;
    kernel.run = [op, sizes, workspace](const KernelContext& ctx) {
      RunPair(op, sizes, workspace, ctx,
              [&](auto vectors, const PairTask& task, const FloatBlock<T>& block, void* memory) {
                RunPairTask<vectors, T>(sizes, ctx, task, block, static_cast<float*>(memory));
              });
    };
    kernel.packed_weights = PackedPanels<T>(sizes.panels(), ConvPair::kW);
  };
  x.dtype == DType::kBFloat16 ? make(TypeTag<bfloat16>{}) : make(TypeTag<float>{});
  if (request.inputs[ConvPair::kW].may_be_packed) return kernel;
  return PackingItself(std::move(kernel));
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Fused, "conv-pair-depthwise",
                              KernelRank::kBest, MakeConvPairDepthwise,
                              PairTraits<WhyNotFloats>({.signatures = OneDnnSignatures()}));

}  // namespace
}  // namespace caffe::cpu
#endif
