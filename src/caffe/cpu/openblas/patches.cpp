#include "caffe/cpu/openblas/patches.hpp"

namespace caffe::cpu {

Patches::Patches(const ops::ConvGeometry& geometry, const TensorDesc& x, const TensorDesc& y)
    : geometry_(geometry),
      axes_(geometry.spatial_axes()),
      in_(x),
      out_(y),
      out_is_channels_last_(y.layout == Layout::kChannelsLast),
      items(x.shape[0]),
      groups(geometry.group),
      channels(x.shape[1] / geometry.group),
      outputs(y.shape[1] / geometry.group),
      in_pixels(x.shape.count(2)),
      out_pixels(y.shape.count(2)) {
  for (int i = 0; i < axes_; ++i) {
    in_extents_.push_back(x.shape[2 + i]);
    out_extents_.push_back(y.shape[2 + i]);
    taps *= geometry.kernel[i];
  }
  offsets_.resize(taps * axes_);
  for (int64_t tap = 0; tap < taps; ++tap) {
    int64_t rest = tap;
    for (int i = axes_ - 1; i >= 0; --i) {
      offsets_[tap * axes_ + i] = rest % geometry.kernel[i] * geometry.dilation[i];
      rest /= geometry.kernel[i];
    }
  }
}

}  // namespace caffe::cpu
