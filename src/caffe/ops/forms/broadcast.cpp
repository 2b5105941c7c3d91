#include "caffe/ops/broadcast.hpp"

#include "caffe/ops/forms/fields.hpp"
#include "caffe/ops/prelu.hpp"

namespace caffe::ops {

CAFFE_FIELDS(ScaleShift, axis, num_axes)
CAFFE_FIELDS(AddBias, axis, num_axes)
CAFFE_FIELDS(PRelu, axis, num_axes)

// Checks that input 0 and the result are alike, and that the other inputs have the shape of the
// covered axes. Those are parameters or results of other layers (Axpy, Scale and Bias with two
// bottoms); kernels read either type.
static void CheckCovered(const BroadcastAxes& op, size_t inputs, const OperandCheck& check) {
  check.AtMost(inputs);
  const TensorDesc &x = check.input(0), &y = check.output();
  check.IsData(x);
  check.IsData(y);
  OperandCheck::SameShape(x, y);
  OperandCheck::SameLayout(x, y);
  const int axes = x.shape.num_axes();
  Require(op.axis >= 0 && op.axis <= axes && op.num_axes >= 0 && op.num_axes <= axes - op.axis,
          op.Attributes(), " of an operand of ", x.shape);
  if (!op.is_per_channel()) OperandCheck::IsPlain(x);
  check.input(1);
  for (size_t i = 1; i < inputs; ++i)
    check.IsFactor(static_cast<int>(i), x.shape.count(op.axis, op.axis + op.num_axes));
}

static void CheckOperands(const ScaleShift& op, const OperandCheck& check) {
  CheckCovered(op, 3, check);
}

static void CheckOperands(const AddBias& op, const OperandCheck& check) {
  CheckCovered(op, 2, check);
}

static void CheckOperands(const PRelu& op, const OperandCheck& check) {
  CheckCovered(op, 2, check);
}

CAFFE_REGISTER_OP_FORM(ScaleShift);
CAFFE_REGISTER_OP_FORM(AddBias);
CAFFE_REGISTER_OP_FORM(PRelu);

}  // namespace caffe::ops
