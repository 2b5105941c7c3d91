// 2-D convolutions of channels-last images: patches of a few pixels are gathered and multiplied by
// the filters; for depthwise convolutions, products are summed channel by channel.
#include "caffe/ops/conv.hpp"

#include <vector>

#include "caffe/cpu/conv_patches.hpp"
#include "caffe/cpu/kernels/epilogue.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/cpu/portable/panels.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

constexpr int64_t kPixels = 32;  // number of pixels for which patches are gathered at a time

void Store(const ops::Conv& op, const KernelContext& ctx, int64_t output, int64_t element,
           float sum) {
  if (ctx.has_input(op.kBias)) sum += static_cast<float>(ElementOf(ctx.input(op.kBias), output));
  ctx.output(0).as<float>()[element] = ApplyEpilogue(ctx, op.epilogue, output, element, sum);
}

void Gather(const ConvPatches& at, const float* x, int64_t group, int64_t pixel, float* patch) {
  const int64_t channels = at.group_channels();
  for (int64_t tap = 0; tap < at.taps; ++tap, patch += channels) {
    const int64_t source = at.Source(pixel, tap);
    if (source < 0) {
      std::fill_n(patch, channels, 0.0f);
    } else {
      std::copy_n(x + source * at.channels + group * channels, channels, patch);
    }
  }
}

// Computes up to kPixels output pixels from `first` on, of one group.
void MultiplyPixels(const ops::Conv& op, const KernelContext& ctx, const ConvPatches& at,
                    int64_t group, int64_t first, std::vector<float>* patches) {
  const int64_t count = std::min(kPixels, at.pixels - first);
  const int64_t inner = at.taps * at.group_channels(), outputs = at.group_outputs();
  for (int64_t i = 0; i < count; ++i)
    Gather(at, ctx.input(op.kX).as<const float>(), group, first + i, patches->data() + i * inner);
  const float* panels =
      ctx.input(op.kW).as<const float>() + group * NumPanels(outputs) * inner * kPanel;
  for (int64_t panel = 0; panel < NumPanels(outputs); ++panel) {
    const int64_t columns = std::min(kPanel, outputs - panel * kPanel);
    for (int64_t i = 0; i < count; i += kTileRows) {
      const float* rows[kTileRows];
      for (int64_t r = 0; r < kTileRows; ++r) rows[r] = patches->data() + (i + r) * inner;
      float sums[kTileRows][kPanel];
      const int64_t num_rows = std::min(kTileRows, count - i);
      MultiplyPanel(rows, num_rows, panels + panel * inner * kPanel, inner, sums);
      for (int64_t r = 0; r < num_rows; ++r) {
        for (int64_t j = 0; j < columns; ++j) {
          const int64_t output = group * outputs + panel * kPanel + j;
          Store(op, ctx, output, (first + i + r) * at.outputs + output, sums[r][j]);
        }
      }
    }
  }
}

void ConvByPatches(const ops::Conv& op, const KernelContext& ctx) {
  const ConvPatches at(op.geometry, ctx.input(op.kX).shape, ctx.output(0).shape);
  const int64_t blocks = (at.pixels + kPixels - 1) / kPixels;
  ParallelFor(blocks * op.geometry.group, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> patches(static_cast<size_t>(kPixels * at.taps * at.group_channels()));
    for (int64_t task = begin; task < end; ++task)
      MultiplyPixels(op, ctx, at, task % op.geometry.group, task / op.geometry.group * kPixels,
                     &patches);
  });
}

CAFFE_CPU_CLONES void AddProducts(const float* x, const float* w, int64_t count, float* sums) {
  for (int64_t c = 0; c < count; ++c) sums[c] += x[c] * w[c];
}

// Depthwise convolution, with filters by tap: w[tap][channel].
void ConvByChannels(const ops::Conv& op, const KernelContext& ctx) {
  const ConvPatches at(op.geometry, ctx.input(op.kX).shape, ctx.output(0).shape);
  const float *x = ctx.input(op.kX).as<const float>(), *w = ctx.input(op.kW).as<const float>();
  ParallelFor(at.pixels, 16, [&](int64_t begin, int64_t end) {
    std::vector<float> sums(static_cast<size_t>(at.channels));
    for (int64_t pixel = begin; pixel < end; ++pixel) {
      std::ranges::fill(sums, 0.0f);
      for (int64_t tap = 0; tap < at.taps; ++tap) {
        const int64_t source = at.Source(pixel, tap);
        if (source >= 0)
          AddProducts(x + source * at.channels, w + tap * at.channels, at.channels, sums.data());
      }
      for (int64_t c = 0; c < at.channels; ++c)
        Store(op, ctx, c, pixel * at.channels + c, sums[static_cast<size_t>(c)]);
    }
  });
}

PackedOperand FiltersInPanels(const ops::Conv& op, const ConvPatches& at) {
  const int64_t group = op.geometry.group, outputs = at.group_outputs(), taps = at.taps,
                channels = at.group_channels(), inner = taps * channels;
  PackedOperand packed;
  packed.operand = ops::Conv::kW;
  packed.bytes = static_cast<size_t>(group * NumPanels(outputs) * inner * kPanel) * sizeof(float);
  packed.convert = [=](const KernelContext& ctx) {
    const float* w = ctx.input(0).as<const float>();
    float* panels = ctx.output(0).as<float>();
    for (int64_t g = 0; g < group; ++g) {
      PackPanels(
          inner, outputs,
          [&](int64_t k, int64_t output) {
            return w[((g * outputs + output) * channels + k % channels) * taps + k / channels];
          },
          panels + g * NumPanels(outputs) * inner * kPanel);
    }
  };
  return packed;
}

PackedOperand FiltersByTap(const ConvPatches& at) {
  const int64_t taps = at.taps, channels = at.channels;
  PackedOperand packed;
  packed.operand = ops::Conv::kW;
  packed.bytes = static_cast<size_t>(taps * channels) * sizeof(float);
  packed.convert = [=](const KernelContext& ctx) {
    const float* w = ctx.input(0).as<const float>();
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t c = 0; c < channels; ++c)
        ctx.output(0).as<float>()[tap * channels + c] = w[c * taps + tap];
    }
  };
  return packed;
}

KernelOrRefusal MakeConv(const ops::Conv& op, const KernelRequest& request) {
  const OperandDesc &x = request.inputs[ops::Conv::kX], &w = request.inputs[ops::Conv::kW];
  if (op.geometry.spatial_axes() != 2) return Refusal{"convolutions over two axes only"};
  if (x.layout != Layout::kChannelsLast) return Refusal{"channels-last images only"};
  if (!w.may_be_packed) return Refusal{"filters that change"};
  const ConvPatches at(op.geometry, x.shape, request.outputs[0].shape);
  if (at.group_channels() == 1 && at.group_outputs() == 1) {
    return Kernel{.run = [op](const KernelContext& ctx) { ConvByChannels(op, ctx); },
                  .packed_weights = FiltersByTap(at)};
  }
  return Kernel{.run = [op](const KernelContext& ctx) { ConvByPatches(op, ctx); },
                .packed_weights = FiltersInPanels(op, at)};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Conv, "conv-panels", KernelRank::kGood,
                              MakeConv,
                              {.signatures = {{DType::kFloat, DType::kFloat}},
                               .layout = Layout::kChannelsLast,
                               .fuses = FusesAny});

}  // namespace
}  // namespace caffe::cpu
