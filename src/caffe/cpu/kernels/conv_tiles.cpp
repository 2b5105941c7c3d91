// Convolutions in bfloat16 and 8 bits as sums of products of tiles (AMX), without rearranging the
// image: in channels-last images the pixels that a row of a window reads are contiguous. Only rows
// with padding, and pixels that are not a multiple of 4 bytes, are copied, a few at a time.
#include <optional>

#include "caffe/cpu/kernels/block_ends.hpp"
#include "caffe/cpu/kernels/conv_descs.hpp"
#include "caffe/cpu/kernels/placed_conv.hpp"
#include "caffe/cpu/kernels/tile_tasks.hpp"
#include "caffe/cpu/onednn.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/fused.hpp"
#include "caffe/ops/kernel.hpp"

#ifdef CAFFE_HAS_PIXEL_SUMS
namespace caffe::cpu {
namespace {

// oneDNN streams images faster that together take more than this, but not those of few channels.
constexpr size_t kFarBytes = 6 << 20;
constexpr int64_t kFewChannels = 4;

std::optional<Refusal> RefuseUnlessTiled(const ops::Conv& op, const KernelRequest& request) {
  const OperandDesc &x = request.inputs[ops::Conv::kX], &w = request.inputs[ops::Conv::kW];
  const ops::ConvGeometry& g = op.geometry;
  if (g.spatial_axes() != 2 || g.group != 1) return Refusal{"only images, without groups"};
  if (x.layout != Layout::kChannelsLast || request.outputs[0].layout != Layout::kChannelsLast)
    return Refusal{"only images with channels last"};
  if (request.outputs[0].count() == 0 || w.count() == 0) return Refusal{"an empty batch"};
  if (g.kernel[0] * g.kernel[1] > kMostTileRuns) return Refusal{"more than 64 taps"};
  return RefuseLarge(g, x.shape);
}

// With the copy of other channels, and weights packed where the plan does not pack them.
Kernel Placed(const PlacedConv& op, const KernelRequest& request, Kernel kernel) {
  if (op.is_part) {
    kernel.run = [op, run = std::move(kernel.run)](const KernelContext& ctx) {
      op.CopyWhole(ctx);
      run(ctx);
    };
  }
  if (request.inputs[ops::Conv::kW].may_be_packed) return kernel;
  return PackingItself(std::move(kernel));
}

template <typename AnyConv>
KernelOrRefusal MakeTiled(const AnyConv& any, const KernelRequest& request) {
  const PlacedConv op(any);
  if (const auto refusal = RefuseUnlessTiled(op.conv, request)) return *refusal;
  const OperandDesc &x = request.inputs[ops::Conv::kX], &y = request.outputs[0];
  if (y.dtype != x.dtype) return Refusal{"images of several types"};
  const TileSizes sizes(op.conv.geometry, x, request.inputs[ops::Conv::kW], y.shape, op.offset);
  if (sizes.cut.is_wasteful()) return Refusal{"windows whose rows do not divide into tiles"};
  if (!op.is_part && x.shape[1] > kFewChannels && x.bytes() + y.bytes() > kFarBytes)
    return Refusal{"images that do not fit the caches"};
  return Placed(
      op, request,
      TileKernel<TilesOfPairs, FloatChannels<bfloat16>, bfloat16>(
          op.conv, request, sizes, PackedPanels<bfloat16>(sizes.panels(), ops::Conv::kW)));
}

template <typename AnyConv>
KernelOrRefusal MakeTiledOfNumbers(const AnyConv& any, const KernelRequest& request) {
  const PlacedConv op(any);
  const ops::Epilogue& epilogue = op.conv.epilogue;
  if (const auto refusal = RefuseUnlessTiled(op.conv, request)) return *refusal;
  const OperandDesc &x = request.inputs[ops::Conv::kX], &w = request.inputs[ops::Conv::kW];
  const int added = ops::AddedOperand(epilogue);
  if (!Is8Bit(x.dtype) || (added >= 0 && !Is8Bit(request.inputs[added].dtype)))
    return Refusal{"only images in 8 bits"};
  if (!IsOneLimit(LimitOf(epilogue))) return Refusal{"no epilogue but a sum and a ReLU or a limit"};
  if (w.shape.count(1) > ops::kMostSummands) return Refusal{"sums of more than 32 bits"};
  const TileSizes sizes(op.conv.geometry, x, w, request.outputs[0].shape, op.offset);
  if (sizes.cut.is_wasteful()) return Refusal{"windows whose rows do not divide into tiles"};
  const bool adds_signed = added >= 0 && request.inputs[added].dtype == DType::kInt8;
  Kernel kernel;
  const auto make = [&]<typename X, typename A>(TypeTag<X>, TypeTag<A>) {
    VisitNumber(request.outputs[0].dtype, [&]<typename Y>(TypeTag<Y>) {
      kernel = TileKernel<TilesOfNumbers<std::is_signed_v<X>>, NumberChannels<A>, Y>(
          op.conv, request, sizes, PackedNumberPanels(sizes.panels(), ops::Conv::kW));
    });
  };
  const auto make_of = [&]<typename X>(TypeTag<X> tag) {
    adds_signed ? make(tag, TypeTag<int8_t>{}) : make(tag, TypeTag<uint8_t>{});
  };
  x.dtype == DType::kInt8 ? make_of(TypeTag<int8_t>{}) : make_of(TypeTag<uint8_t>{});
  return Placed(op, request, std::move(kernel));
}

KernelTraits TiledTraits() {
  return UnlessTiles({.signatures = {{DType::kBFloat16, DType::kFloat}}, .fuses = OneDnnFuses});
}
KernelTraits TiledNumberTraits() {
  return UnlessTiles(Int8Traits(FusesNumbers));
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Conv, "conv-by-tiles", KernelRank::kBest,
                              MakeTiled<ops::Conv>, TiledTraits());
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Conv, "conv-by-tiles-int8", KernelRank::kBest,
                              MakeTiledOfNumbers<ops::Conv>, TiledNumberTraits());
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Fused, "conv-into-by-tiles", KernelRank::kBest,
                              MakeTiled<ops::Fused>, IntoWholeTraits(TiledTraits()));
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Fused, "conv-into-by-tiles-int8",
                              KernelRank::kBest, MakeTiledOfNumbers<ops::Fused>,
                              IntoWholeTraits(TiledNumberTraits()));

}  // namespace
}  // namespace caffe::cpu
#endif
