#include "caffe/ops/conv.hpp"

#include "caffe/ops/forms/fields.hpp"
#include "caffe/ops/int8.hpp"

namespace caffe::ops {

CAFFE_FIELDS(ConvGeometry, kernel, stride, pad, dilation, group)
CAFFE_FIELDS(ConvChoice, algorithm, math, is_measured)
CAFFE_FIELDS(Conv, geometry, choice, epilogue)
CAFFE_FIELDS(ConvGradData, geometry, choice, epilogue)

// Checks a convolution of `x` with `w` that gives `y`; also used with `x` and `y` swapped.
static void CheckConvolution(const ConvGeometry& geometry, const TensorDesc& x, const TensorDesc& w,
                             const TensorDesc& y, const OperandCheck& check) {
  const size_t axes = geometry.kernel.size();
  Require(geometry.stride.size() == axes && geometry.pad.size() == axes &&
              geometry.dilation.size() == axes,
          "a convolution's options are for ", axes, ", ", geometry.stride.size(), ", ",
          geometry.pad.size(), " and ", geometry.dilation.size(), " axes");
  geometry.Check();
  if (check.is_in_8_bits()) {
    OperandCheck::IsNumbers(x);
    Require(w.dtype == DType::kFloat, "weights of 8-bit data are ", Name(w.dtype),
            "; they must be floats");
    Require(w.shape.num_axes() > 0 && w.shape.count(1) <= kMostSummands, "sums of ",
            w.shape.num_axes() > 0 ? w.shape.count(1) : 0, " products of 8-bit numbers; ",
            kMostSummands, " fit 32 bits");
  }
  for (const TensorDesc* operand : {&x, &w, &y}) {
    check.IsData(*operand);
    Require(operand->shape.num_axes() == geometry.spatial_axes() + 2, "an operand of ",
            operand->shape, " of a convolution over ", axes, " axes");
  }
  OperandCheck::SameLayout(x, y);
  OperandCheck::IsPlain(w);
  const int64_t items = x.shape[0], channels = x.shape[1], outputs = w.shape[0];
  Require(geometry.group >= 1 && outputs % geometry.group == 0 &&
              channels == w.shape[1] * geometry.group,
          "weights of ", w.shape, " in ", geometry.group, " groups, for ", channels, " channels");
  std::vector<int64_t> result = {items, outputs};
  for (int axis = 0; axis < geometry.spatial_axes(); ++axis) {
    Require(w.shape[axis + 2] == geometry.kernel[axis], "weights of ", w.shape, " for a kernel of ",
            geometry.kernel[axis], " along axis ", axis);
    result.push_back(geometry.OutputSize(axis, x.shape[axis + 2]));
  }
  Require(y.shape == Shape(result), "a convolution gives ", Shape(result), ", not ", y.shape);
}

static void CheckOperands(const Conv& op, const OperandCheck& check) {
  check.Epilogue(op.epilogue, Conv::kBias + 1);
  const TensorDesc& w = check.input(Conv::kW);
  CheckConvolution(op.geometry, check.input(Conv::kX), w, check.output(), check);
  check.IsParameter(Conv::kBias, w.shape[0]);
}

static void CheckOperands(const ConvGradData& op, const OperandCheck& check) {
  check.Epilogue(op.epilogue, ConvGradData::kW + 1);
  CheckConvolution(op.geometry, check.output(), check.input(ConvGradData::kW),
                   check.input(ConvGradData::kDy), check);
}

CAFFE_REGISTER_OP_FORM(Conv);
CAFFE_REGISTER_OP_FORM(ConvGradData);

}  // namespace caffe::ops
