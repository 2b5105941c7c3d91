#include "caffe/cuda/numbers.cuh"
#include "caffe/cuda/pack.cuh"
#include "caffe/cuda/padded_channels.hpp"
#include "caffe/ops/conv.hpp"

namespace caffe::cuda {
namespace {

using ops::Conv;
using ops::ConvGradWeights;

// Copies a pixel of `columns` channels and pads it with zeros to N channels.
template <typename T, int N>
struct PadPixel {
  const T* from;
  int64_t columns;
  T* to;

  __device__ void operator()(int64_t pixel) const {
    Pack<T, N> pack;
#pragma unroll
    for (int k = 0; k < N; ++k)
      pack.values[k] = k < columns ? from[pixel * columns + k] : T(Accum<T>(0));
    reinterpret_cast<Pack<T, N>*>(to)[pixel] = pack;
  }
};

void PadPixels(const KernelContext& ctx, const TensorView& x, int64_t channels, void* to) {
  const int64_t pixels = x.count() / x.shape[1];
  VisitFloat(x.dtype, [&]<typename T>(TypeTag<T>) {
    const auto run = [&]<int N>(std::integral_constant<int, N>) {
      ForEach(ctx, pixels, PadPixel<T, N>{x.as<const T>(), x.shape[1], static_cast<T*>(to)});
    };
    channels == 4 ? run(std::integral_constant<int, 4>{}) : run(std::integral_constant<int, 8>{});
  });
}

// Copies a KCRS filter: a row per output, padded from `columns` to `padded` elements.
struct PadFilter {
  Numbers from;
  int64_t columns, padded;
  Numbers to;

  __device__ void operator()(int64_t i) const {
    int64_t column;
    const int64_t row = Divide(i, padded, &column);
    to.Set(i, column < columns ? from.Get<float>(row * columns + column) : 0.f);
  }
};

// to = or += the columns that have data.
struct TakeFilter {
  Numbers from;
  int64_t columns, padded;
  Gradient to;

  __device__ void operator()(int64_t i) const {
    int64_t column;
    const int64_t row = Divide(i, columns, &column);
    to.Store(i, from.Get<float>(row * padded + column));
  }
};

OperandDesc WithChannels(OperandDesc operand, int64_t channels) {
  std::vector<int64_t> dims = operand.shape.dims();
  dims[1] = channels;
  operand.shape = Shape(dims);
  operand.may_be_packed = false;
  return operand;
}

Numbers NumbersOf(const TensorView& view) {
  return {view.data, view.dtype};
}

void PadFilters(const KernelContext& ctx, const TensorView& filter, const TensorView& padded) {
  if (filter.layout == Layout::kChannelsLast)
    return PadPixels(ctx, filter, padded.shape[1], padded.data);
  ForEach(ctx, padded.count(),
          PadFilter{NumbersOf(filter), filter.shape.count(1), padded.shape.count(1),
                    NumbersOf(padded)});
}

}  // namespace

std::vector<int64_t> PaddedChannelCounts(const KernelRequest& request) {
  const OperandDesc& x = request.inputs[0];
  const auto* conv = request.op.As<Conv>();
  const auto* gradient = request.op.As<ConvGradWeights>();
  if (conv == nullptr && gradient == nullptr) return {};
  const int64_t group = conv != nullptr ? conv->geometry.group : gradient->geometry.group;
  if (x.layout != Layout::kChannelsLast || group != 1 || x.dtype == DType::kDouble) return {};
  std::vector<int64_t> counts;
  for (const int64_t count : {4, 8}) {
    if (x.shape[1] < count) counts.push_back(count);
  }
  return counts;
}

KernelOrRefusal OnPaddedChannels(const KernelRequest& request, int64_t channels,
                                 const MakeConvolution& make) {
  const bool is_gradient = request.op.As<ConvGradWeights>() != nullptr;
  const OperandDesc& filter =
      is_gradient ? request.outputs[ConvGradWeights::kDw] : request.inputs[Conv::kW];
  CopiedOperands copied;
  copied.images = WithChannels(request.inputs[0], channels);
  copied.filter = WithChannels(filter, channels);
  copied.copy_images = [](const KernelContext& ctx, const TensorView& to) {
    PadPixels(ctx, ctx.input(0), to.shape[1], to.data);
  };
  copied.copy_filter = [](const KernelContext& ctx, const TensorView& to) {
    PadFilters(ctx, ctx.input(Conv::kW), to);
  };
  copied.take_filter = [](const KernelContext& ctx, const TensorView& from) {
    const TensorView& dw = ctx.output(ConvGradWeights::kDw);
    ForEach(ctx, dw.count(),
            TakeFilter{NumbersOf(from), dw.shape.count(1), from.shape.count(1),
                       OutputGradient(ctx, ConvGradWeights::kDw)});
  };
  return OnCopies(request, request.op, copied, make, StrCat(" on ", channels, " channels"));
}

}  // namespace caffe::cuda
