#include "caffe/ops/arrange.hpp"

#include <algorithm>

#include "caffe/ops/convert.hpp"
#include "caffe/ops/forms/fields.hpp"

namespace caffe::ops {

CAFFE_FIELDS(Permute, order)
CAFFE_FIELDS(Tile, axis, tiles)
CAFFE_FIELDS(Crop, offsets)
CAFFE_NO_FIELDS(Gather)
CAFFE_FIELDS(Concat, axis, in_place)
CAFFE_FIELDS(SliceOf, axis, offset, in_place)
CAFFE_FIELDS(View, keeps_shape)
CAFFE_NO_FIELDS(Reorder)
CAFFE_NO_FIELDS(Cast)

// Checks that there is one input, with the type of the result.
static const TensorDesc& OnlyInput(const OperandCheck& check) {
  check.AtMost(1);
  check.IsData(check.input(0));
  check.IsData(check.output());
  OperandCheck::AreAlike(check.input(0), check.output());
  return check.input(0);
}

static const TensorDesc& OnlyPlainInput(const OperandCheck& check) {
  OperandCheck::IsPlain(OnlyInput(check));
  OperandCheck::IsPlain(check.output());
  return check.input(0);
}

static void CheckOperands(const Permute& op, const OperandCheck& check) {
  const Shape& x = OnlyInput(check).shape;
  if (!op.puts_channels_last()) OperandCheck::IsPlain(check.input(0));
  if (!op.puts_channels_second()) OperandCheck::IsPlain(check.output());
  std::vector<int> axes = op.order;
  std::ranges::sort(axes);
  bool is_order = axes.size() == static_cast<size_t>(x.num_axes());
  for (size_t i = 0; i < axes.size(); ++i) is_order = is_order && axes[i] == static_cast<int>(i);
  Require(is_order, op.Attributes(), " is not an order of the axes of ", x);
  Require(op.OutputShape(x) == check.output().shape, "a permutation gives ", op.OutputShape(x),
          ", not ", check.output().shape);
}

static void CheckOperands(const Tile& op, const OperandCheck& check) {
  const TensorDesc& x = OnlyPlainInput(check);
  OperandCheck::Axis(op.axis, x);
  const Shape& y = check.output().shape;
  Require(y.num_axes() == x.shape.num_axes(), x.shape, " is tiled to ", y);
  OperandCheck::Axis(op.axis, check.output());
  Require(op.tiles >= 1 && y[op.axis] % op.tiles == 0 && x.shape.With(op.axis, y[op.axis]) == y &&
              y[op.axis] / op.tiles == x.shape[op.axis],
          x.shape, " is tiled ", op.tiles, " times to ", y);
}

static void CheckOperands(const Crop& op, const OperandCheck& check) {
  const Shape &x = OnlyPlainInput(check).shape, &y = check.output().shape;
  Require(op.offsets.size() == static_cast<size_t>(x.num_axes()) && x.num_axes() == y.num_axes(),
          op.offsets.size(), " offsets crop ", x, " to ", y);
  for (int axis = 0; axis < x.num_axes(); ++axis) {
    const int64_t offset = op.offsets[static_cast<size_t>(axis)];
    Require(offset >= 0 && offset <= x[axis] - y[axis], "offset ", offset, " of axis ", axis,
            " crops ", x, " to ", y);
  }
}

static void CheckOperands(const Gather&, const OperandCheck& check) {
  check.AtMost(2);
  const TensorDesc &table = check.input(0), &index = check.input(1), &y = check.output();
  check.IsData(table);
  check.IsData(y);
  Require(!Is8Bit(index.dtype), "an index of bytes");
  for (const TensorDesc* operand : {&table, &index, &y}) OperandCheck::IsPlain(*operand);
  OperandCheck::Axis(0, table);
  OperandCheck::SameCount(y.count(), index.count() * table.shape.count(1));
}

// Checks that `part` has the shape of `whole` except along `axis`; returns the part's extent there.
static int64_t PartExtent(const TensorDesc& part, const TensorDesc& whole, int axis) {
  OperandCheck::SameLayout(part, whole);
  OperandCheck::Axis(axis, part);
  OperandCheck::Axis(axis, whole);
  Require(part.shape.num_axes() == whole.shape.num_axes() &&
              part.shape.With(axis, whole.shape[axis]) == whole.shape,
          part.shape, " is not part of ", whole.shape, " along axis ", axis);
  return part.shape[axis];
}

static void CheckOperands(const Concat& op, const OperandCheck& check) {
  check.AtMost(check.num_inputs());
  check.IsData(check.output());
  int64_t extent = 0;
  for (size_t i = 0; i < check.num_inputs(); ++i) {
    const TensorDesc& part = check.input(static_cast<int>(i));
    check.IsData(part);
    OperandCheck::AreAlike(part, check.output());
    extent += PartExtent(part, check.output(), op.axis);
  }
  OperandCheck::Axis(op.axis, check.output());
  Require(extent == check.output().shape[op.axis], "parts of ", extent, " along axis ", op.axis,
          " are joined to ", check.output().shape);
}

static void CheckOperands(const SliceOf& op, const OperandCheck& check) {
  const TensorDesc& x = OnlyInput(check);
  const int64_t extent = PartExtent(check.output(), x, op.axis);
  Require(op.offset >= 0 && op.offset <= x.shape[op.axis] - extent, "a slice of ", extent,
          " begins at ", op.offset, " of axis ", op.axis, " of ", x.shape);
}

static void CheckOperands(const View& op, const OperandCheck& check) {
  const TensorDesc &x = OnlyInput(check), &y = check.output();
  OperandCheck::SameCount(x.count(), y.count());
  OperandCheck::SameLayout(x, y);
  if (op.keeps_shape) {
    OperandCheck::SameShape(x, y);
  } else {
    OperandCheck::IsPlain(x);
  }
}

static void CheckConversion(const OperandCheck& check) {
  check.AtMost(1);
  const TensorDesc &x = check.input(0), &y = check.output();
  OperandCheck::SameShape(x, y);
  if (!Is8Bit(x.dtype) && !Is8Bit(y.dtype)) return;
  for (const TensorDesc* operand : {&x, &y})
    Require(Is8Bit(operand->dtype) || operand->dtype == DType::kFloat, "8-bit numbers and ",
            Name(operand->dtype), " are not converted into each other; floats are");
}

static void CheckOperands(const Reorder&, const OperandCheck& check) {
  CheckConversion(check);
}

static void CheckOperands(const Cast&, const OperandCheck& check) {
  CheckConversion(check);
  OperandCheck::SameLayout(check.input(0), check.output());
}

CAFFE_REGISTER_OP_FORM(Permute);
CAFFE_REGISTER_OP_FORM(Tile);
CAFFE_REGISTER_OP_FORM(Crop);
CAFFE_REGISTER_OP_FORM(Gather);
CAFFE_REGISTER_OP_FORM(Concat);
CAFFE_REGISTER_OP_FORM(SliceOf);
CAFFE_REGISTER_OP_FORM(View);
CAFFE_REGISTER_OP_FORM(Reorder);
CAFFE_REGISTER_OP_FORM(Cast);

}  // namespace caffe::ops
