#include "caffe/ops/conv.hpp"

#include "caffe/ops/read_again.hpp"

namespace caffe::ops {
namespace {

// The bias gradient reads dy in a separate pass.
const ReadAgain<ConvGradWeights> grad_weights([](const ConvGradWeights&, OperandDescs inputs,
                                                 OperandDescs outputs) {
  const bool sums_again =
      BytesOf(outputs, ConvGradWeights::kDw) > 0 && BytesOf(outputs, ConvGradWeights::kDbias) > 0;
  return sums_again ? BytesOf(inputs, ConvGradWeights::kDy) : 0.0;
});

std::string Join(const std::vector<int64_t>& extents) {
  std::string text;
  for (const int64_t extent : extents) text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text;
}

bool AnyDiffersFrom(const std::vector<int64_t>& extents, int64_t usual) {
  for (const int64_t extent : extents) {
    if (extent != usual) return true;
  }
  return false;
}

std::string SpatialAxis(int axis) {
  return StrCat("spatial axis ", axis);
}

// Does not use the shape of the weights, because a kernel may have packed them.
double ConvFlops(const ConvGeometry& geometry, const Shape& input, const Shape& output) {
  double each = 2.0 * static_cast<double>(input[1] / geometry.group);
  for (const int64_t extent : geometry.kernel) each *= static_cast<double>(extent);
  return each * static_cast<double>(output.count());
}

}  // namespace

bool ConvGeometry::LeavesOutPixels() const {
  if (!AnyDiffersFrom(kernel, 1) && !AnyDiffersFrom(pad, 0)) return false;
  for (int i = 0; i < spatial_axes(); ++i) {
    if (stride[i] > Span(i)) return true;
  }
  return false;
}

void ConvGeometry::Check() const {
  for (int i = 0; i < spatial_axes(); ++i) window(i).Check(SpatialAxis(i));
}

int64_t ConvGeometry::OutputSize(int axis, int64_t input) const {
  return window(axis).Outputs(SpatialAxis(axis), input, WindowRounding::kTowardZero);
}

int64_t ConvGeometry::TransposedOutputSize(int axis, int64_t input) const {
  return window(axis).TransposedOutputs(SpatialAxis(axis), input);
}

std::string ConvGeometry::ToString() const {
  std::string text = "kernel " + Join(kernel);
  if (AnyDiffersFrom(stride, 1)) text += ", stride " + Join(stride);
  if (AnyDiffersFrom(pad, 0)) text += ", pad " + Join(pad);
  if (AnyDiffersFrom(dilation, 1)) text += ", dilation " + Join(dilation);
  if (group != 1) text += ", group " + std::to_string(group);
  return text;
}

double Conv::Flops(std::span<const TensorDesc> inputs, std::span<const TensorDesc> outputs) const {
  return ConvFlops(geometry, inputs[kX].shape, outputs[0].shape);
}

double ConvGradData::Flops(std::span<const TensorDesc> inputs,
                           std::span<const TensorDesc> outputs) const {
  return ConvFlops(geometry, outputs[0].shape, inputs[kDy].shape);
}

double ConvGradWeights::Flops(std::span<const TensorDesc> inputs,
                              std::span<const TensorDesc>) const {
  return ConvFlops(geometry, inputs[kX].shape, inputs[kDy].shape);
}

}  // namespace caffe::ops
