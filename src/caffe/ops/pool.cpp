#include "caffe/ops/pool.hpp"

namespace caffe::ops {

int64_t PoolGeometry::OutputSize(int axis, int64_t input) const {
  const int64_t room = input + 2 * pad[axis] - kernel[axis];
  // Rounded up, what lacks less than a stride is one window.
  Require(room > (rounds_down ? -1 : -stride[axis]), "pooling kernel ", kernel[axis],
          " is too large for the padded input ", input + 2 * pad[axis], " along ",
          axis == 0 ? "height" : "width", "; raise pad or lower kernel_size");
  int64_t output = (rounds_down ? room : room + stride[axis] - 1) / stride[axis] + 1;
  const bool is_padded = pad[0] != 0 || pad[1] != 0;
  if (is_padded && (output - 1) * stride[axis] >= input + pad[axis]) --output;
  return output;
}

std::string PoolGeometry::ToString() const {
  std::string text = StrCat("kernel ", kernel[0], "x", kernel[1]);
  if (stride[0] != 1 || stride[1] != 1) text += StrCat(", stride ", stride[0], "x", stride[1]);
  if (pad[0] != 0 || pad[1] != 0) text += StrCat(", pad ", pad[0], "x", pad[1]);
  return text;
}

namespace {

double WindowFlops(const PoolGeometry& geometry, std::span<const TensorDesc> outputs) {
  return static_cast<double>(outputs[0].count()) *
         static_cast<double>(geometry.kernel[0] * geometry.kernel[1]);
}

}  // namespace

double MaxPool::Flops(std::span<const TensorDesc>, std::span<const TensorDesc> outputs) const {
  return WindowFlops(geometry, outputs);
}

double AvePool::Flops(std::span<const TensorDesc>, std::span<const TensorDesc> outputs) const {
  return WindowFlops(geometry, outputs);
}

}  // namespace caffe::ops
