#include "caffe/ops/pool.hpp"

#include "caffe/ops/forms/fields.hpp"
#include "caffe/ops/int8.hpp"

namespace caffe::ops {

CAFFE_FIELDS(PoolGeometry, kernel, stride, pad, rounds_down)
CAFFE_FIELDS(MaxPool, geometry)
CAFFE_FIELDS(AvePool, geometry)

static void CheckPooling(const PoolGeometry& geometry, const OperandCheck& check) {
  check.AtMost(1);
  geometry.Check();
  const TensorDesc &x = check.input(0), &y = check.output();
  check.IsData(x);
  check.IsData(y);
  OperandCheck::SameLayout(x, y);
  Require(x.shape.num_axes() == 4, "pooling of ", x.shape, ", which has not 4 axes");
  const Shape result{x.shape[0], x.shape[1], geometry.OutputSize(0, x.shape[2]),
                     geometry.OutputSize(1, x.shape[3])};
  Require(y.shape == result, "pooling gives ", result, ", not ", y.shape);
}

static void CheckOperands(const MaxPool& op, const OperandCheck& check) {
  OperandCheck::AreAlike(check.input(0), check.output());
  CheckPooling(op.geometry, check);
}

static void CheckOperands(const AvePool& op, const OperandCheck& check) {
  CheckPooling(op.geometry, check);
  if (!check.is_in_8_bits()) return;
  const std::string why_not = WhyNotAverage(op.geometry, check.input(0).shape);
  Require(why_not.empty(), why_not);
}

CAFFE_REGISTER_OP_FORM(MaxPool);
CAFFE_REGISTER_OP_FORM(AvePool);

}  // namespace caffe::ops
