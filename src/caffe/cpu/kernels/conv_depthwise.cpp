// Filter gradients of depthwise convolutions of channels-last images. Each channel has one filter,
// so a vector holds 16 channels, and nothing has to be packed. Sums are float whatever the type of
// the images.
#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "caffe/cpu/kernels/channels_last.hpp"
#include "caffe/cpu/kernels/float_vector.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/conv.hpp"

namespace caffe::cpu {
namespace {

// Sizes of one convolution; x is its input image, y its output image.
struct Sizes {
  int64_t channels, x_height, x_width, y_height, y_width, kernel_height, pad_height, pad_width;

  Sizes(const ops::ConvGeometry& g, const Shape& x, const Shape& y)
      : channels(x[1]),
        x_height(x[2]),
        x_width(x[3]),
        y_height(y[2]),
        y_width(y[3]),
        kernel_height(g.kernel[0]),
        pad_height(g.pad[0]),
        pad_width(g.pad[1]) {}
  int64_t x_row() const { return x_width * channels; }
  int64_t y_row() const { return y_width * channels; }
  // Channels per tap in `filters`, rounded up to whole vectors.
  int64_t padded_channels() const {
    return (channels + kFloatLanes - 1) / kFloatLanes * kFloatLanes;
  }
};

// Adds the contribution of one row of dy to the filter gradients, which have padded_channels()
// elements per tap, and to the bias gradient, which may be null.
template <typename T, int kWidth, int kStride>
CAFFE_CPU_CLONES void AddFilterRow(const Sizes& s, const T* x, const T* dy, int64_t oh,
                                   float* filters, float* bias) {
  constexpr int kMade = 4;
  constexpr int kColumns = (kMade - 1) * kStride + kWidth;
  const int64_t top = oh * kStride - s.pad_height;
  const T* gradients = dy + oh * s.y_row();
  ForVectors(s.channels, [&](int64_t c, auto lanes) CAFFE_FORCE_INLINE {
    for (int64_t kh = 0; kh < s.kernel_height; ++kh) {
      if (top + kh < 0 || top + kh >= s.x_height) continue;
      const T* row = x + (top + kh) * s.x_row() + c;
      FloatVector sums[kWidth] = {};
      for (int64_t ow = 0; ow < s.y_width; ow += kMade) {
        const int64_t left = ow * kStride - s.pad_width;
        const bool is_inside = left >= 0 && left + kColumns <= s.x_width;
        FloatVector made[kMade] = {};
        Unroll<kMade>([&](auto at) CAFFE_FORCE_INLINE {
          if (ow + at < s.y_width) Load(gradients + (ow + at) * s.channels + c, lanes, made[at]);
        });
        Unroll<kColumns>([&](auto column) CAFFE_FORCE_INLINE {
          if (!is_inside && (left + column < 0 || left + column >= s.x_width)) return;
          FloatVector value;
          Load(row + (left + column) * s.channels, lanes, value);
          Unroll<kWidth>([&](auto kw) CAFFE_FORCE_INLINE {
            constexpr int kFrom = column() - kw(), kAt = kFrom / kStride;
            if constexpr (kFrom >= 0 && kFrom % kStride == 0 && kAt < kMade)
              sums[kw] += value * made[kAt];
          });
        });
      }
      for (int kw = 0; kw < kWidth; ++kw) {
        float* total = filters + (kh * kWidth + kw) * s.padded_channels() + c;
        FloatVector sum;
        Load(total, sum);
        sum += sums[kw];
        Store(sum, total);
      }
    }
    if (bias == nullptr) return;
    FloatVector sum;
    Load(bias + c, sum);
    for (int64_t ow = 0; ow < s.y_width; ++ow) {
      FloatVector value;
      Load(gradients + ow * s.channels + c, lanes, value);
      sum += value;
    }
    Store(sum, bias + c);
  });
}

// Calls fn(integral_constant<kernel width>, integral_constant<stride>) for a geometry that
// RefuseUnlessDepthwise() accepts.
template <typename Fn>
void VisitGeometry(const ops::ConvGeometry& g, const Fn& fn) {
  constexpr std::integral_constant<int, 3> width;
  if (g.stride[0] == 1) return fn(width, std::integral_constant<int, 1>{});
  fn(width, std::integral_constant<int, 2>{});
}

// `x` and `y` as in Sizes.
std::optional<Refusal> RefuseUnlessDepthwise(const ops::ConvGeometry& g, const OperandDesc& x,
                                             const OperandDesc& y) {
  if (g.spatial_axes() != 2 || g.group == 1 || g.group != x.shape[1] || g.group != y.shape[1])
    return Refusal{"only one filter for each channel of an image"};
  if (g.kernel[1] != 3 || g.stride[0] != g.stride[1] || g.stride[0] > 2)
    return Refusal{"only kernels 3 wide with a stride of 1 or 2"};
  if (g.dilation[0] != 1 || g.dilation[1] != 1) return Refusal{"only without dilation"};
  if (x.layout != Layout::kChannelsLast || y.layout != Layout::kChannelsLast)
    return Refusal{"only images with channels last"};
  if (x.count() == 0) return Refusal{"an empty batch"};
  return std::nullopt;
}

// Calls fn(TypeTag<T>{}) with float or bfloat16.
template <typename Fn>
void VisitImage(DType dtype, const Fn& fn) {
  if (dtype == DType::kBFloat16) return fn(TypeTag<bfloat16>{});
  CAFFE_ASSERT(dtype == DType::kFloat, "no kernel for ", Name(dtype));
  fn(TypeTag<float>{});
}

// Adds up the threads' sums and stores them in the net's order.
void StoreFilters(const KernelContext& ctx, const Sizes& s, const float* sums, int64_t stride,
                  int threads) {
  using Grad = ops::ConvGradWeights;
  const TensorView& dw = ctx.output(Grad::kDw);
  const int64_t taps = dw.shape.count(2);
  const auto store = [&](int output, int64_t i, int64_t at) {
    float sum = ctx.accumulates(output) ? ctx.output(output).as<float>()[i] : 0.0f;
    for (int thread = 0; thread < threads; ++thread) sum += sums[thread * stride + at];
    ctx.output(output).as<float>()[i] = sum;
  };
  for (int64_t c = 0; c < s.channels; ++c) {
    for (int64_t tap = 0; tap < taps; ++tap)
      store(Grad::kDw, c * taps + tap, tap * s.padded_channels() + c);
    if (ctx.has_output(Grad::kDbias)) store(Grad::kDbias, c, taps * s.padded_channels() + c);
  }
}

KernelOrRefusal MakeDepthwiseGradWeights(const ops::ConvGradWeights& op,
                                         const KernelRequest& request) {
  using Grad = ops::ConvGradWeights;
  const OperandDesc &x = request.inputs[Grad::kX], &y = request.inputs[Grad::kDy];
  if (const auto refusal = RefuseUnlessDepthwise(op.geometry, x, y)) return *refusal;
  for (const OperandDesc& output : request.outputs) {
    if (output.present && output.dtype != DType::kFloat) return Refusal{"only float gradients"};
  }
  if (!request.outputs[Grad::kDw].present)
    return Refusal{"only together with the gradient of the weights"};
  const Sizes sizes(op.geometry, x.shape, y.shape);
  const int threads = request.device.num_threads();
  // Per thread: filter gradients, then bias gradients.
  const int64_t taps = request.outputs[Grad::kDw].shape.count(2);
  const int64_t stride = (taps + 1) * sizes.padded_channels();
  return Kernel{
      "",
      [=](const KernelContext& ctx) {
        float* sums = static_cast<float*>(ctx.workspace);
        std::fill_n(sums, threads * stride, 0.0f);
        const int64_t rows = ctx.input(Grad::kDy).shape[0] * sizes.y_height;
        VisitImage(ctx.input(Grad::kX).dtype, [&]<typename T>(TypeTag<T>) {
          VisitGeometry(op.geometry, [&]<typename W, typename S>(W, S) {
            ParallelFor(threads, 1, [&](int64_t begin, int64_t end) {
              for (int64_t thread = begin; thread < end; ++thread) {
                float* filters = sums + thread * stride;
                float* bias = ctx.has_output(Grad::kDbias)
                                  ? filters + taps * sizes.padded_channels()
                                  : nullptr;
                for (int64_t row = rows * thread / threads; row < rows * (thread + 1) / threads;
                     ++row) {
                  const int64_t n = row / sizes.y_height;
                  AddFilterRow<T, W::value, S::value>(
                      sizes, ctx.input(Grad::kX).as<const T>() + n * sizes.x_height * sizes.x_row(),
                      ctx.input(Grad::kDy).as<const T>() + n * sizes.y_height * sizes.y_row(),
                      row % sizes.y_height, filters, bias);
                }
              }
            });
          });
        });
        StoreFilters(ctx, sizes, sums, stride, threads);
      },
      static_cast<size_t>(threads * stride) * sizeof(float)};
}

KernelTraits DepthwiseTraits() {
  return {.signatures = {{DType::kFloat, DType::kFloat}, {DType::kBFloat16, DType::kFloat}},
          .layout = Layout::kChannelsLast};
}

// Comes before oneDNN's kernel, which has the same rank, because of its name.
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::ConvGradWeights, "conv-grad-weights-depthwise",
                              KernelRank::kBest, MakeDepthwiseGradWeights, DepthwiseTraits());

}  // namespace
}  // namespace caffe::cpu
