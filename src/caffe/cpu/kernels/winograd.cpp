#include "caffe/cpu/kernels/winograd.hpp"

#include "caffe/cpu/kernels/conv_descs.hpp"

namespace caffe::cpu {
std::optional<Refusal> RefuseUntiled(const ops::ConvGeometry& geometry, const OperandDesc& x,
                                     const OperandDesc& y, int64_t outputs) {
  constexpr int64_t kFewestChannels = 32;
  if (geometry.spatial_axes() != 2 || geometry.group != 1 || !AreAll(geometry.kernel, 3) ||
      !AreAll(geometry.stride, 1) || !AreAll(geometry.dilation, 1)) {
    return Refusal{"only windows of 3x3 without strides, dilation and groups"};
  }
  if (x.layout != Layout::kChannelsLast || y.layout != Layout::kChannelsLast)
    return Refusal{"only images with channels last"};
  for (const int64_t channels : {x.shape[1], outputs}) {
    if (channels % kFloatLanes != 0 || channels < kFewestChannels)
      return Refusal{"only channels in multiples of 16, at least 32"};
  }
  if (x.count() == 0 || y.count() == 0) return Refusal{"an empty batch"};
  return RefuseLarge(geometry, x.shape);
}

}  // namespace caffe::cpu
