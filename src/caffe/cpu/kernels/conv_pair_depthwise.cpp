// A convolution of 1x1 and a depthwise one behind it, which MobileNets have in each block (Sandler
// et al. 2018, "MobileNetV2: Inverted Residuals and Linear Bottlenecks"). The image between them
// has several times the channels of what is read, so here a few of its channels are computed for as
// many rows as the windows span, and go no farther than the nearest cache. Channels lie last.
#include <omp.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "caffe/cpu/kernels/conv_descs.hpp"
#include "caffe/cpu/kernels/pixel_sums.hpp"
#include "caffe/cpu/onednn.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/cpu/processor.hpp"
#include "caffe/ops/conv_pair.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

using ops::ConvPair;

constexpr int kWindow = 3;   // both extents of the depthwise windows
constexpr int kWindows = 7;  // windows of a row that are computed together

struct PairSizes {
  int64_t channels, hidden, height, width, rows, columns, stride, pad_y, pad_x;
  int64_t units;  // 4 bytes each, of a pixel of x
  int64_t items, threads, blocks, bands;

  PairSizes(const ConvPair& op, const TensorDesc& images, const Shape& y)
      : PairSizes(op, images.shape, y, static_cast<int64_t>(SizeOf(images.dtype))) {}
  PairSizes(const ConvPair& op, const Shape& x, const Shape& y, int64_t element)
      : channels(x[1]),
        hidden(y[1]),
        height(x[2]),
        width(x[3]),
        rows(y[2]),
        columns(y[3]),
        stride(op.second.geometry.stride[0]),
        pad_y(op.second.geometry.pad[0]),
        pad_x(op.second.geometry.pad[1]),
        units(channels * element / kUnitBytes),
        items(x[0]),
        threads(omp_get_max_threads()),
        blocks(BlocksOf(hidden)) {
    // Each band of rows computes those above and below it, which others compute, too, so there are
    // only as many as the threads need to have equal parts.
    bands = std::min(threads / std::gcd(threads, items * blocks), rows);
  }

  int64_t tasks() const { return items * blocks * bands; }
  // Columns of a row between the convolutions: with what the last windows of a row read together.
  int64_t padded_width() const {
    const int64_t made = (columns + kWindows - 1) / kWindows * kWindows;
    return std::max(width + 2 * pad_x, (made - 1) * stride + kWindow);
  }
  int64_t row_floats() const { return padded_width() * kBlock; }
  // Of one block's weights, in units.
  int64_t panel_units() const { return units * kBlock; }
};

// Three rows, of which those outside the image are null.
struct WindowRows {
  const float* row[kWindow];
};

// A row of results: of each channel 9 weights, `filters` having a tap's kBlock after the other.
template <int kStride, int kVectors, typename T>
CAFFE_CPU_CLONES void ConvolveRow(const WindowRows& rows, const float* filters, const SumEnd& end,
                                  int64_t columns, int64_t hidden, T* y) {
  constexpr int kColumns = (kWindows - 1) * kStride + kWindow;
  Unroll<kVectors>([&](auto v) CAFFE_FORCE_INLINE {
    constexpr int kChannel = v * kFloatLanes;
    FloatVector bias = {};
    if (end.bias != nullptr) Load(end.bias + kChannel, bias);
    for (int64_t at = 0; at < columns; at += kWindows) {
      FloatVector sums[kWindows];
      Unroll<kWindows>([&](auto i) CAFFE_FORCE_INLINE { sums[i] = bias; });
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
        end.Apply(sums[i]);
        Store(sums[i], y + (at + i) * hidden + kChannel);
      });
    }
  });
}

// A part of the work: some rows of a block of channels of an image.
struct PairTask {
  int64_t item, channel, first_row, last_row;

  PairTask(const PairSizes& s, int64_t number)
      : item(number / (s.blocks * s.bands)),
        channel(number / s.bands % s.blocks * kBlock),
        first_row(s.rows * (number % s.bands) / s.bands),
        last_row(s.rows * (number % s.bands + 1) / s.bands) {}
};

// What the tasks of a run share; weights are packed.
template <typename T>
struct PairOperands {
  const T* x;
  const float* panels;
  const T* filters;
  T* y;
  SumEnd first, second;
};

// The filters of a block's channels as ConvolveRow() reads them.
template <typename T>
void SpreadFilters(const T* filters, int64_t count, float* to) {
  constexpr int kTaps = kWindow * kWindow;
  for (int64_t c = 0; c < count; ++c) {
    for (int tap = 0; tap < kTaps; ++tap)
      to[tap * kBlock + c] = static_cast<float>(filters[c * kTaps + tap]);
  }
}

// `ring` has kWindow rows between the convolutions, of padded columns.
template <int kVectors, typename T>
void RunPairTask(const PairSizes& s, const PairOperands<T>& operands, const PairTask& task,
                 float* ring) {
  float filters[kWindow * kWindow * kBlock];
  SpreadFilters(operands.filters + task.channel * kWindow * kWindow, kVectors * kFloatLanes,
                filters);
  std::fill_n(ring, kWindow * s.row_floats(), 0.0F);  // what lies beside the image stays so
  const SumEnd first = operands.first.From(task.channel);
  const SumEnd second = operands.second.From(task.channel);
  const float* panel = operands.panels + task.channel / kBlock * s.panel_units();
  const T* image = operands.x + task.item * s.height * s.width * s.channels;
  int64_t next = std::max<int64_t>(0, task.first_row * s.stride - s.pad_y);
  for (int64_t row = task.first_row; row < task.last_row; ++row) {
    const int64_t top = row * s.stride - s.pad_y;
    const int64_t bottom = std::min(top + kWindow, s.height);
    for (next = std::max(next, top); next < bottom; ++next) {
      const auto* const from = reinterpret_cast<const char*>(image + next * s.width * s.channels);
      SumRow<kVectors>(TypeTag<T>{}, {&from, 1, s.units, s.units}, s.width, panel, first,
                       ring + next % kWindow * s.row_floats() + s.pad_x * kBlock, kBlock);
    }
    WindowRows rows;
    for (int kh = 0; kh < kWindow; ++kh) {
      const bool is_inside = top + kh >= 0 && top + kh < s.height;
      rows.row[kh] = is_inside ? ring + (top + kh) % kWindow * s.row_floats() : nullptr;
    }
    T* const y = operands.y + ((task.item * s.rows + row) * s.columns) * s.hidden + task.channel;
    if (s.stride == 1) {
      ConvolveRow<1, kVectors>(rows, filters, second, s.columns, s.hidden, y);
    } else {
      ConvolveRow<2, kVectors>(rows, filters, second, s.columns, s.hidden, y);
    }
  }
}

template <typename T>
void RunPair(const ConvPair& op, const PairSizes& sizes, const KernelContext& ctx) {
  const PairOperands<T> operands = {
      .x = ctx.input(ConvPair::kX).as<const T>(),
      .panels = ctx.input(ConvPair::kW).as<const float>(),
      .filters = ctx.input(ConvPair::kSecondW).as<const T>(),
      .y = ctx.output(0).as<T>(),
      .first = SumEnd(op.first.epilogue, ctx, ConvPair::kBias),
      .second = SumEnd(op.second.epilogue, ctx, ConvPair::kSecondBias)};
  ParallelFor(sizes.threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t thread = begin; thread < end; ++thread) {
      float* const ring =
          static_cast<float*>(ctx.workspace) + thread * kWindow * sizes.row_floats();
      const int64_t last = sizes.tasks() * (thread + 1) / sizes.threads;
      for (int64_t number = sizes.tasks() * thread / sizes.threads; number < last; ++number) {
        const PairTask task(sizes, number);
        if (sizes.hidden - task.channel >= kBlock) {
          RunPairTask<kBlockVectors>(sizes, operands, task, ring);
        } else {
          RunPairTask<1>(sizes, operands, task, ring);
        }
      }
    }
  });
}

// Blocks of channels one after the other, of each the weights of one unit after the other.
template <typename T>
PackedOperand PairPanels(const PairSizes& sizes) {
  constexpr int64_t kInUnit = kUnitBytes / sizeof(T);
  const auto pack = [sizes](const KernelContext& ctx) {
    const T* const from = ctx.input(0).as<const T>();
    T* const to = ctx.output(0).as<T>();
    ParallelFor(sizes.hidden, 64, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        T* const panel = to + (k / kBlock * sizes.panel_units() + k % kBlock) * kInUnit;
        for (int64_t c = 0; c < sizes.channels; ++c) {
          panel[c / kInUnit * kBlock * kInUnit + c % kInUnit] = from[k * sizes.channels + c];
        }
      }
    });
  };
  return {ConvPair::kW, static_cast<size_t>(sizes.blocks * sizes.panel_units()) * sizeof(float),
          pack, 0};
}

std::optional<Refusal> RefuseUnlessPair(const ConvPair& op, const KernelRequest& request) {
  const OperandDesc &x = request.inputs[ConvPair::kX], &y = request.outputs[0];
  const ops::ConvGeometry &first = op.first.geometry, &second = op.second.geometry;
  if (first.spatial_axes() != 2 || first.group != 1 || !AreAll(first.kernel, 1) ||
      !AreAll(first.stride, 1) || !AreAll(first.pad, 0)) {
    return Refusal{"only windows of 1x1 without strides, padding and groups come first"};
  }
  if (second.group != y.shape[1] || second.spatial_axes() != 2 ||
      request.inputs[ConvPair::kSecondW].shape != Shape({y.shape[1], 1, kWindow, kWindow}) ||
      !AreAll(second.dilation, 1) || second.stride[0] != second.stride[1] || second.stride[0] > 2) {
    return Refusal{"only depthwise windows of 3x3 with a stride of 1 or 2 come second"};
  }
  if (x.layout != Layout::kChannelsLast || y.layout != Layout::kChannelsLast)
    return Refusal{"only images with channels last"};
  if (y.shape[1] % kFloatLanes != 0) return Refusal{"only channels in multiples of 16"};
  if (!OneDnnFuses(op.first.epilogue) || !OneDnnFuses(op.second.epilogue))
    return Refusal{"no epilogue but a ReLU"};
  if (x.dtype == DType::kBFloat16 && x.shape[1] % 2 != 0)
    return Refusal{"an odd number of bfloat16 channels"};
  if (y.count() == 0) return Refusal{"an empty batch"};
  if (!HasWideVectors()) return Refusal{"only on processors with AVX-512"};
  return RefuseLarge(second, op.Between(x, request.inputs[ConvPair::kSecondW]).shape);
}

KernelOrRefusal MakeConvPairDepthwise(const ConvPair& op, const KernelRequest& request) {
  if (const auto refusal = RefuseUnlessPair(op, request)) return *refusal;
  const OperandDesc& x = request.inputs[ConvPair::kX];
  const PairSizes sizes(op, x, request.outputs[0].shape);
  Kernel kernel;
  kernel.workspace_bytes =
      static_cast<size_t>(sizes.threads * kWindow * sizes.row_floats()) * sizeof(float);
  const auto make = [&]<typename T>(TypeTag<T>) {
    kernel.run = [op, sizes](const KernelContext& ctx) { RunPair<T>(op, sizes, ctx); };
    kernel.packed_weights = PairPanels<T>(sizes);
  };
  x.dtype == DType::kBFloat16 ? make(TypeTag<bfloat16>{}) : make(TypeTag<float>{});
  if (request.inputs[ConvPair::kW].may_be_packed) return kernel;
  return PackingItself(std::move(kernel));
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ConvPair, "conv-pair-depthwise", KernelRank::kBest,
                              MakeConvPairDepthwise, {.signatures = OneDnnSignatures()});

}  // namespace
}  // namespace caffe::cpu
