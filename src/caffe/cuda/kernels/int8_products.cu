// 8-bit products by our own kernels: depthwise convolutions, which move more data than they
// multiply, and reference kernels for all products for which cuDNN has no engine.
#include "caffe/cuda/divisor.cuh"
#include "caffe/cuda/int8.cuh"
#include "caffe/cuda/int8_products.hpp"

namespace caffe::cuda {
namespace {

// A convolution over two axes of channels-last images.
struct Geometry {
  ops::Window rows, columns;
  int64_t channels, height, width;  // of x
  int64_t outputs, group_channels, group_outputs;
  Divisor out_height, out_width;

  Geometry(const ops::ConvGeometry& g, const Shape& x, const Shape& y)
      : rows(g.window(0)),
        columns(g.window(1)),
        channels(x[1]),
        height(x[2]),
        width(x[3]),
        outputs(y[1]),
        group_channels(x[1] / g.group),
        group_outputs(y[1] / g.group),
        out_height(y[2]),
        out_width(y[3]) {}

  // Offset of the pixel of x that a tap reads; -1 outside the image.
  __device__ int64_t Source(int64_t item, int64_t oh, int64_t ow, int64_t r, int64_t s) const {
    const int64_t h = oh * rows.stride - rows.pad + r * rows.dilation;
    const int64_t w = ow * columns.stride - columns.pad + s * columns.dilation;
    if (h < 0 || h >= height || w < 0 || w >= width) return -1;
    return ((item * height + h) * width + w) * channels;
  }
  // Calls body(source, tap) for the taps of output pixel `pixel` that read inside the image.
  template <typename Body>
  __device__ void ForTaps(uint32_t pixel, const Body& body) const {
    uint32_t ow, oh;
    const int64_t item = out_height.Divide(out_width.Divide(pixel, &ow), &oh);
    for (int64_t r = 0; r < rows.kernel; ++r) {
      for (int64_t s = 0; s < columns.kernel; ++s) {
        const int64_t source = Source(item, oh, ow, r, s);
        if (source >= 0) body(source, r * columns.kernel + s);
      }
    }
  }
};

// Adds the products of N neighbouring channels for one tap.
template <int N>
struct AddTap {
  const int8_t *x, *w;
  int64_t channel, channels;
  int32_t* sums;

  __device__ void operator()(int64_t source, int64_t tap) const {
    const Pack<int8_t, N> data = PackAt<int8_t, N>(x, (source + channel) / N);
    const Pack<int8_t, N> weights = PackAt<int8_t, N>(w, (tap * channels + channel) / N);
#pragma unroll
    for (int k = 0; k < N; ++k) sums[k] += data.values[k] * weights.values[k];
  }
};

// Depthwise convolution, weights ordered by tap: N channels of a pixel.
template <typename T, int N>
struct ConvChannels {
  Geometry geometry;
  Divisor packs;  // in a pixel
  Finish finish;
  const int8_t *x, *w;
  T* y;

  __device__ void operator()(int64_t pack) const {
    uint32_t in_pixel;
    const uint32_t pixel = packs.Divide(static_cast<uint32_t>(pack), &in_pixel);
    const int64_t channel = int64_t{in_pixel} * N;
    int32_t sums[N] = {};
    geometry.ForTaps(pixel, AddTap<N>{x, w, channel, geometry.channels, sums});
    float values[N];
#pragma unroll
    for (int k = 0; k < N; ++k) values[k] = static_cast<float>(sums[k]);
    finish.Store(channel, pack, values, y);
  }
};

struct AddGroupTap {
  const int8_t *x, *w;  // from the group's first channel, from the output's filter
  int64_t channels;     // of the group
  int32_t* sum;

  __device__ void operator()(int64_t source, int64_t tap) const {
    for (int64_t c = 0; c < channels; ++c) *sum += x[source + c] * w[tap * channels + c];
  }
};

// Computes one output.
template <typename T>
struct ConvDirect {
  Geometry geometry;
  Finish finish;
  const int8_t *x, *w;
  T* y;

  __device__ void operator()(int64_t i) const {
    int64_t output;
    const auto pixel = static_cast<uint32_t>(Divide(i, geometry.outputs, &output));
    const int64_t channels = geometry.group_channels,
                  group = Divide(output, geometry.group_outputs);
    const int64_t taps = geometry.rows.kernel * geometry.columns.kernel;
    int32_t sum = 0;
    geometry.ForTaps(
        pixel, AddGroupTap{x + group * channels, w + output * taps * channels, channels, &sum});
    const float values[1] = {static_cast<float>(sum)};
    finish.Store(output, i, values, y);
  }
};

template <typename T>
struct GemmDirect {
  int64_t columns, inner;
  Finish finish;
  const int8_t *x, *w;
  T* y;

  __device__ void operator()(int64_t i) const {
    int64_t column;
    const int64_t row = Divide(i, columns, &column);
    int32_t sum = 0;
    for (int64_t k = 0; k < inner; ++k) sum += x[row * inner + k] * w[column * inner + k];
    const float values[1] = {static_cast<float>(sum)};
    finish.Store(column, i, values, y);
  }
};

std::optional<Refusal> RefuseImages(const ops::Conv& op, const KernelRequest& request) {
  if (op.geometry.spatial_axes() != 2) return Refusal{"convolutions over two axes only"};
  if (request.inputs[0].layout != Layout::kChannelsLast ||
      request.outputs[0].layout != Layout::kChannelsLast)
    return Refusal{"channels-last images only"};
  return RefuseNumbers(request);
}

// Creates the kernel of a product with packed weights; calls run(ctx, numbers, finish).
template <typename Fn>
Kernel MakeProduct(const Int8Weights& weights, const ops::Epilogue& epilogue, const Fn& run) {
  return Kernel{.run =
                    [=](const KernelContext& ctx) {
                      int8_t* const numbers = weights.numbers(ctx, ctx.workspace);
                      run(ctx, numbers, Finish(ctx, epilogue, weights.factors(numbers)));
                    },
                .workspace_bytes = weights.workspace_bytes(),
                .packed_weights = weights.packed()};
}

KernelOrRefusal MakeConvChannels(const ops::Conv& op, const KernelRequest& request) {
  const Shape &x = request.inputs[0].shape, &w = request.inputs[1].shape;
  if (const auto refusal = RefuseImages(op, request)) return *refusal;
  if (w[1] != 1 || w[0] != x[1]) return Refusal{"only a filter for each channel"};
  const Geometry geometry(op.geometry, x, request.outputs[0].shape);
  const Int8Weights weights(WeightOrder::OfDepthwise(w), request, op.epilogue);
  return MakeProduct(
      weights, op.epilogue, [=](const KernelContext& ctx, int8_t* numbers, const Finish& finish) {
        const TensorView& y = ctx.output(0);
        VisitNumber(y.dtype, [&]<typename T>(TypeTag<T>) {
          VisitChannelPacks(geometry.channels, [&]<int N>(std::integral_constant<int, N>) {
            ForEach(ctx, y.count() / N,
                    ConvChannels<T, N>{geometry, Divisor(geometry.channels / N), finish,
                                       ctx.input(0).as<const int8_t>(), numbers, y.as<T>()});
          });
        });
      });
}

KernelOrRefusal MakeConvDirect(const ops::Conv& op, const KernelRequest& request) {
  if (const auto refusal = RefuseImages(op, request)) return *refusal;
  const Shape& w = request.inputs[1].shape;
  const Geometry geometry(op.geometry, request.inputs[0].shape, request.outputs[0].shape);
  const Int8Weights weights(WeightOrder::OfConv(w), request, op.epilogue);
  return MakeProduct(
      weights, op.epilogue, [=](const KernelContext& ctx, int8_t* numbers, const Finish& finish) {
        const TensorView& y = ctx.output(0);
        VisitNumber(y.dtype, [&]<typename T>(TypeTag<T>) {
          ForEach(
              ctx, y.count(),
              ConvDirect<T>{geometry, finish, ctx.input(0).as<const int8_t>(), numbers, y.as<T>()});
        });
      });
}

KernelOrRefusal MakeGemmDirect(const ops::Gemm& op, const KernelRequest& request) {
  if (const auto refusal = RefuseNumbers(request)) return *refusal;
  if (op.transpose_a) return Refusal{"only data whose rows are items"};
  const Int8Weights weights(WeightOrder::OfGemm(op), request, op.epilogue);
  const int64_t columns = op.columns, inner = op.inner;
  return MakeProduct(
      weights, op.epilogue, [=](const KernelContext& ctx, int8_t* numbers, const Finish& finish) {
        const TensorView& y = ctx.output(0);
        VisitNumber(y.dtype, [&]<typename T>(TypeTag<T>) {
          ForEach(ctx, y.count(),
                  GemmDirect<T>{columns, inner, finish, ctx.input(0).as<const int8_t>(), numbers,
                                y.as<T>()});
        });
      });
}

// cuDNN computes all convolutions other than depthwise ones.
std::string WhyNotChannels(const Op& op, std::span<const OperandDesc> inputs, const Device&) {
  const Shape &x = inputs[0].shape, &w = inputs[1].shape;
  const bool is_depthwise =
      op.As<ops::Conv>()->geometry.spatial_axes() == 2 && w[1] == 1 && w[0] == x[1];
  return is_depthwise ? "" : "it is not a convolution of one channel each";
}

KernelTraits ChannelsTraits() {
  KernelTraits traits = ProductTraits(Layout::kChannelsLast);
  traits.why_not = WhyNotChannels;
  return traits;
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::Conv, "conv-int8-channels", KernelRank::kGood,
                              MakeConvChannels, ChannelsTraits());
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::Conv, "conv-int8-direct", KernelRank::kSlow,
                              MakeConvDirect, ProductTraits(Layout::kChannelsLast));
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::Gemm, "gemm-int8-direct", KernelRank::kSlow,
                              MakeGemmDirect, ProductTraits({}));

}  // namespace
}  // namespace caffe::cuda
