#include "caffe/cuda/numbers.cuh"
#include "caffe/cuda/pack.cuh"
#include "caffe/cuda/space_to_depth.hpp"
#include "caffe/ops/conv.hpp"

namespace caffe::cuda {
namespace {

using ops::Conv;
using ops::ConvGradWeights;

constexpr int64_t kPackChannels = 8;  // engines read this many together
constexpr int64_t kMostChannels = 64;

// Mapping of pixels to channels: channel (row * steps_w + column) * channels + c of a block is
// channel c of its pixel at (row, column); the rest of the last pack is zero. Blocks begin in the
// padding.
struct Blocks {
  int32_t channels, height, width;  // of the images
  int32_t step_h, step_w, pad_h, pad_w;
  int32_t kernel_h, kernel_w;  // of the filter
  int32_t packed;              // channels of a block, padded to whole packs
  int32_t blocks_h, blocks_w;  // of an image
  int32_t taps_h, taps_w;      // of the filter, in blocks

  __host__ __device__ int32_t used() const { return channels * step_h * step_w; }
};

// Copies a pack of a block's channels.
template <typename T>
struct GatherBlocks {
  Blocks of;
  const T* from;
  T* to;

  __device__ void operator()(int64_t i) const {
    constexpr int N = kPackChannels;
    int64_t pack, column, row, c, q_w;
    const int64_t block = Divide(i, of.packed / N, &pack);
    const int64_t item = Divide(Divide(block, of.blocks_w, &column), of.blocks_h, &row);
    int64_t q_h = Divide(Divide(pack * N, of.channels, &c), of.step_w, &q_w);
    Pack<T, N> result;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const int64_t y = row * of.step_h + q_h - of.pad_h, x = column * of.step_w + q_w - of.pad_w;
      const bool is_inside = q_h < of.step_h && y >= 0 && y < of.height && x >= 0 && x < of.width;
      result.values[k] = is_inside ? from[((item * of.height + y) * of.width + x) * of.channels + c]
                                   : T(Accum<T>(0));
      if (++c == of.channels) {
        c = 0;
        if (++q_w == of.step_w) q_w = 0, ++q_h;
      }
    }
    reinterpret_cast<Pack<T, N>*>(to)[i] = result;
  }
};

// Copies the filter to its channels-last form over blocks.
struct GatherFilter {
  Blocks of;
  bool is_channels_last;  // of the filter in the net
  Numbers from, to;

  __device__ void operator()(int64_t i) const {
    int64_t channel, a_w, a_h, c, q_w;
    const int64_t tap = Divide(i, of.packed, &channel);
    const int64_t output = Divide(Divide(tap, of.taps_w, &a_w), of.taps_h, &a_h);
    const int64_t q_h = Divide(Divide(channel, of.channels, &c), of.step_w, &q_w);
    const int64_t y = a_h * of.step_h + q_h, x = a_w * of.step_w + q_w;
    const bool is_there = channel < of.used() && y < of.kernel_h && x < of.kernel_w;
    const int64_t at = is_channels_last
                           ? ((output * of.kernel_h + y) * of.kernel_w + x) * of.channels + c
                           : ((output * of.channels + c) * of.kernel_h + y) * of.kernel_w + x;
    to.Set(i, is_there ? from.Get<float>(at) : 0.f);
  }
};

// dw = or += the corresponding elements of the gradient over blocks.
struct TakeFilterOfBlocks {
  Blocks of;
  Numbers from;
  Gradient to;

  __device__ void operator()(int64_t i) const {
    int64_t x, y, c, q_h, q_w;
    const int64_t output =
        Divide(Divide(Divide(i, of.kernel_w, &x), of.kernel_h, &y), of.channels, &c);
    const int64_t a_h = Divide(y, of.step_h, &q_h), a_w = Divide(x, of.step_w, &q_w);
    const int64_t channel = (q_h * of.step_w + q_w) * of.channels + c;
    to.Store(i,
             from.Get<float>(((output * of.packed + channel) * of.taps_h + a_h) * of.taps_w + a_w));
  }
};

int32_t Narrow(int64_t value) {
  return static_cast<int32_t>(value);
}

OperandDesc Described(DType type, Layout layout, std::vector<int64_t> dims) {
  OperandDesc desc;
  desc.shape = Shape(std::move(dims));
  desc.dtype = type;
  desc.layout = layout;
  return desc;
}

// Returns why blocks cannot be used; empty if they can.
std::string UnfitForBlocks(const ops::ConvGeometry& g, const OperandDesc& x) {
  if (g.spatial_axes() != 2 || g.group != 1) return "groups, or no images";
  if (x.layout != Layout::kChannelsLast || x.dtype == DType::kDouble || Is8Bit(x.dtype))
    return "only floats whose channels lie last";
  if (g.dilation != std::vector<int64_t>{1, 1}) return "a kernel with gaps";
  const int64_t pixels = g.stride[0] * g.stride[1];
  if (pixels == 1) return "it goes pixel by pixel already";
  if (g.kernel[0] < g.stride[0] || g.kernel[1] < g.stride[1]) return "a kernel that skips pixels";
  if (x.shape[1] >= kPackChannels || x.shape[1] * pixels > kMostChannels) return "many channels";
  return "";
}

Blocks BlocksOf(const ops::ConvGeometry& g, const OperandDesc& x, const OperandDesc& y) {
  const auto blocks = [&](int axis) {  // of the filter and of the image, along an axis
    const int64_t taps = (g.kernel[axis] + g.stride[axis] - 1) / g.stride[axis];
    return std::pair(taps, y.shape[2 + axis] + taps - 1);
  };
  const auto [taps_h, blocks_h] = blocks(0);
  const auto [taps_w, blocks_w] = blocks(1);
  const int64_t used = x.shape[1] * g.stride[0] * g.stride[1];
  const int64_t packed = (used + kPackChannels - 1) / kPackChannels * kPackChannels;
  return {Narrow(x.shape[1]),  Narrow(x.shape[2]), Narrow(x.shape[3]), Narrow(g.stride[0]),
          Narrow(g.stride[1]), Narrow(g.pad[0]),   Narrow(g.pad[1]),   Narrow(g.kernel[0]),
          Narrow(g.kernel[1]), Narrow(packed),     Narrow(blocks_h),   Narrow(blocks_w),
          Narrow(taps_h),      Narrow(taps_w)};
}

CopiedOperands Copied(const Blocks& blocks, const OperandDesc& x, const OperandDesc& filter,
                      Layout filter_layout) {
  CopiedOperands copied;
  copied.images =
      Described(x.dtype, x.layout, {x.shape[0], blocks.packed, blocks.blocks_h, blocks.blocks_w});
  copied.filter = Described(filter.dtype, filter_layout,
                            {filter.shape[0], blocks.packed, blocks.taps_h, blocks.taps_w});
  copied.copy_images = [blocks](const KernelContext& ctx, const TensorView& to) {
    VisitFloat(to.dtype, [&]<typename T>(TypeTag<T>) {
      ForEach(ctx, to.count() / kPackChannels,
              GatherBlocks<T>{blocks, ctx.input(0).as<const T>(), to.as<T>()});
    });
  };
  copied.copy_filter = [blocks](const KernelContext& ctx, const TensorView& to) {
    const TensorView& from = ctx.input(Conv::kW);
    ForEach(ctx, to.count(),
            GatherFilter{blocks,
                         from.layout == Layout::kChannelsLast,
                         {from.data, from.dtype},
                         {to.data, to.dtype}});
  };
  copied.take_filter = [blocks](const KernelContext& ctx, const TensorView& from) {
    ForEach(ctx, ctx.output(ConvGradWeights::kDw).count(),
            TakeFilterOfBlocks{
                blocks, {from.data, from.dtype}, OutputGradient(ctx, ConvGradWeights::kDw)});
  };
  return copied;
}

}  // namespace

KernelOrRefusal OnSpaceToDepth(const KernelRequest& request, const MakeConvolution& make) {
  const auto* conv = request.op.As<Conv>();
  const auto* gradient = request.op.As<ConvGradWeights>();
  if (conv == nullptr && gradient == nullptr) return Refusal{"not this op"};
  const ops::ConvGeometry& g = conv != nullptr ? conv->geometry : gradient->geometry;
  const OperandDesc& x = request.inputs[0];
  if (std::string why = UnfitForBlocks(g, x); !why.empty()) return Refusal{why};
  const Blocks blocks =
      BlocksOf(g, x, conv != nullptr ? request.outputs[0] : request.inputs[ConvGradWeights::kDy]);
  const ops::ConvGeometry over_blocks{{blocks.taps_h, blocks.taps_w}, {1, 1}, {0, 0}, {1, 1}, 1};
  const std::string suffix = StrCat(" on blocks of ", g.stride[0], "x", g.stride[1], " pixels");
  if (conv != nullptr) {
    return OnCopies(request, Conv{over_blocks, conv->choice, conv->epilogue},
                    Copied(blocks, x, request.inputs[Conv::kW], Layout::kChannelsLast), make,
                    suffix);
  }
  return OnCopies(request, ConvGradWeights{over_blocks, gradient->choice},
                  Copied(blocks, x, request.outputs[ConvGradWeights::kDw], Layout::kPlain), make,
                  suffix);
}

}  // namespace caffe::cuda
