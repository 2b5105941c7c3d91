#include "caffe/ops/forms/fields.hpp"
#include "caffe/ops/loss.hpp"
#include "caffe/ops/row_norm.hpp"

namespace caffe::ops {

CAFFE_FIELDS(Softmax, axis)
CAFFE_FIELDS(Mvn, axis, divides, eps, eps_in_root)
CAFFE_FIELDS(L2Normalize, across_spatial, eps)
CAFFE_FIELDS(RmsNorm, axis, eps)

static void CheckOperands(const Softmax& op, const OperandCheck& check) {
  check.AtMost(1);
  OperandCheck::SameShape(check.input(0), check.output());
  OperandCheck::Axis(op.axis, check.output());
  Require(SizeOf(check.output().dtype) >= 4, "a softmax of ", Name(check.output().dtype),
          "; it must be float or double");
  for (const TensorDesc* operand : {&check.input(0), &check.output()}) {
    OperandCheck::IsPlain(*operand);
    Require(!Is8Bit(operand->dtype), "the softmax of bytes");
  }
}

static void CheckOperands(const Mvn& op, const OperandCheck& check) {
  check.AtMost(1);
  check.AllLikeOutput();
  OperandCheck::IsPlain(check.output());
  Require(op.axis >= 0 && op.axis <= check.output().shape.num_axes(), "rows from axis ", op.axis,
          " of ", check.output().shape);
}

static void CheckOperands(const L2Normalize&, const OperandCheck& check) {
  check.AtMost(1);
  check.AllLikeOutput();
  Require(check.output().shape.num_axes() >= 2, "norms of the channels of ", check.output().shape);
}

static void CheckOperands(const RmsNorm& op, const OperandCheck& check) {
  check.AtMost(2);
  const TensorDesc &x = check.input(RmsNorm::kX), &y = check.output();
  check.IsData(x);
  check.IsData(y);
  OperandCheck::SameShape(x, y);
  OperandCheck::IsPlain(x);
  OperandCheck::IsPlain(y);
  Require(op.axis >= 0 && op.axis <= x.shape.num_axes(), "rows from axis ", op.axis, " of ",
          x.shape);
  if (check.has_input(RmsNorm::kGamma)) check.IsFactor(RmsNorm::kGamma, x.shape.count(op.axis));
}

CAFFE_REGISTER_OP_FORM(Softmax);
CAFFE_REGISTER_OP_FORM(Mvn);
CAFFE_REGISTER_OP_FORM(L2Normalize);
CAFFE_REGISTER_OP_FORM(RmsNorm);

}  // namespace caffe::ops
