#include "caffe/ops/pool.hpp"

namespace caffe::ops {

namespace {

constexpr std::array<const char*, 2> kAxisNames = {"height", "width"};

}  // namespace

void PoolGeometry::Check() const {
  for (const int axis : {0, 1}) {
    window(axis).Check(kAxisNames[axis]);
    Require(pad[axis] < kernel[axis], "pad ", pad[axis], " must be smaller than the kernel ",
            kernel[axis]);
  }
}

int64_t PoolGeometry::OutputSize(int axis, int64_t input) const {
  int64_t output = window(axis).Outputs(kAxisNames[axis], input,
                                        rounds_down ? WindowRounding::kDown : WindowRounding::kUp);
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
