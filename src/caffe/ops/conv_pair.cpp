#include "caffe/ops/conv_pair.hpp"

#include <vector>

namespace caffe::ops {

TensorDesc ConvPair::Between(const TensorDesc& x, const TensorDesc& second_w) const {
  std::vector<int64_t> dims = {x.shape[0], second_w.shape[1] * second.geometry.group};
  for (int axis = 0; axis < first.geometry.spatial_axes(); ++axis)
    dims.push_back(first.geometry.OutputSize(axis, x.shape[axis + 2]));
  if (!Is8Bit(x.dtype)) return {Shape(dims), x.dtype, x.layout};
  return {Shape(dims), between, x.layout, between_scale};
}

double ConvPair::Flops(std::span<const TensorDesc> inputs,
                       std::span<const TensorDesc> outputs) const {
  const TensorDesc image = Between(inputs[kX], inputs[kSecondW]);
  return first.Flops(inputs, std::span(&image, 1)) + second.Flops(std::span(&image, 1), outputs);
}

}  // namespace caffe::ops
