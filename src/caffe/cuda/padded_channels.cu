#include <functional>

#include "caffe/cuda/numbers.cuh"
#include "caffe/cuda/pack.cuh"
#include "caffe/cuda/padded_channels.hpp"
#include "caffe/cuda/vendor_types.hpp"
#include "caffe/ops/conv.hpp"

namespace caffe::cuda {
namespace {

using ops::Conv;
using ops::ConvGradWeights;

// A pixel: N channels of `columns` and zeros.
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

// A filter in its plain order: a row per output, of which `columns` elements are there.
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

// to = or += the columns that are there.
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

// A view of the padded operand at this place of the workspace.
TensorView At(const OperandDesc& desc, void* workspace, size_t offset) {
  TensorView view;
  static_cast<TensorDesc&>(view) = desc;
  view.data = static_cast<char*>(workspace) + offset;
  return view;
}

// The workspace: images, filter, what the padded convolution needs.
struct PaddedOperands {
  OperandDesc x, filter;

  size_t filter_offset() const { return AlignWorkspace(x.bytes()); }
  size_t bytes() const { return filter_offset() + AlignWorkspace(filter.bytes()); }
  // Of an output's row of the filter.
  int64_t columns() const { return filter.shape.count(1); }

  TensorView Images(const KernelContext& ctx) const {
    const TensorView images = At(x, ctx.workspace, 0);
    PadPixels(ctx, ctx.input(0), x.shape[1], images.data);
    return images;
  }
};

Kernel PaddedConv(Kernel padded, const PaddedOperands& operands) {
  padded.run = [run = padded.run, operands](const KernelContext& ctx) {
    std::vector<TensorView> inputs(ctx.inputs.begin(), ctx.inputs.end());
    inputs[Conv::kX] = operands.Images(ctx);
    inputs[Conv::kW] = At(operands.filter, ctx.workspace, operands.filter_offset());
    PadFilters(ctx, ctx.input(Conv::kW), inputs[Conv::kW]);
    KernelContext inner = ctx;
    inner.inputs = inputs;
    inner.workspace = static_cast<char*>(ctx.workspace) + operands.bytes();
    run(inner);
  };
  return padded;
}

Kernel PaddedGradient(Kernel padded, const PaddedOperands& operands) {
  padded.run = [run = padded.run, operands](const KernelContext& ctx) {
    std::vector<TensorView> inputs(ctx.inputs.begin(), ctx.inputs.end());
    std::vector<TensorView> outputs(ctx.outputs.begin(), ctx.outputs.end());
    inputs[ConvGradWeights::kX] = operands.Images(ctx);
    outputs[ConvGradWeights::kDw] = At(operands.filter, ctx.workspace, operands.filter_offset());
    KernelContext inner = ctx;
    inner.inputs = inputs;
    inner.outputs = outputs;
    inner.accumulated = {};
    if (ctx.accumulates(ConvGradWeights::kDbias)) inner.accumulated.insert(ConvGradWeights::kDbias);
    inner.workspace = static_cast<char*>(ctx.workspace) + operands.bytes();
    run(inner);
    const TensorView& filter = ctx.output(ConvGradWeights::kDw);
    ForEach(ctx, filter.count(),
            TakeFilter{NumbersOf(outputs[ConvGradWeights::kDw]), filter.shape.count(1),
                       operands.columns(), OutputGradient(ctx, ConvGradWeights::kDw)});
  };
  return padded;
}

bool IsGradient(const KernelRequest& request) {
  return request.op.As<ConvGradWeights>() != nullptr;
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
    const bool fits = WithChannels(x, count).bytes() <= kWorkspaceLimit;
    if (x.shape[1] < count && fits) counts.push_back(count);
  }
  return counts;
}

KernelOrRefusal OnPaddedChannels(const KernelRequest& request, int64_t channels,
                                 const std::function<KernelOrRefusal(const KernelRequest&)>& make) {
  std::vector<OperandDesc> inputs(request.inputs.begin(), request.inputs.end());
  std::vector<OperandDesc> outputs(request.outputs.begin(), request.outputs.end());
  OperandDesc& filter = IsGradient(request) ? outputs[ConvGradWeights::kDw] : inputs[Conv::kW];
  inputs[0] = WithChannels(inputs[0], channels);
  filter = WithChannels(filter, channels);
  const PaddedOperands operands{inputs[0], filter};
  KernelOrRefusal answer = make({request.op, inputs, outputs, request.device, request.settings});
  Kernel* const kernel = std::get_if<Kernel>(&answer);
  if (kernel == nullptr) return answer;
  kernel->workspace_bytes += operands.bytes();
  for (std::string& name : kernel->algorithms) name += StrCat(" on ", channels, " channels");
  return IsGradient(request) ? PaddedGradient(std::move(*kernel), operands)
                             : PaddedConv(std::move(*kernel), operands);
}

}  // namespace caffe::cuda
