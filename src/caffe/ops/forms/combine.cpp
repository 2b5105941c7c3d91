#include "caffe/ops/combine.hpp"

#include "caffe/ops/forms/fields.hpp"

namespace caffe::ops {

CAFFE_FIELDS(BroadcastSteps, axes, extents, steps)
CAFFE_FIELDS(Combine, kind, broadcast)
CAFFE_FIELDS(Choose, broadcast)

// Checks that the steps lead through the result, and to no element that an operand does not have.
static void CheckSteps(const BroadcastSteps& broadcast, int operands, const OperandCheck& check) {
  check.AtMost(static_cast<size_t>(operands));
  const TensorDesc& y = check.output();
  Require(broadcast.axes >= 0 && broadcast.axes <= BroadcastSteps::kMostAxes, "a broadcast over ",
          broadcast.axes, " axes; there are at most ", BroadcastSteps::kMostAxes);
  std::vector<int64_t> extents(broadcast.extents.begin(),
                               broadcast.extents.begin() + broadcast.axes);
  OperandCheck::SameCount(y.count(), Shape(extents).count());
  for (int operand = 0; operand < operands; ++operand) {
    const TensorDesc& x = check.input(operand);
    if (!broadcast.RepeatsNone(operands)) OperandCheck::IsPlain(x);
    int64_t last = 0;
    for (int axis = 0; axis < broadcast.axes; ++axis) {
      const int64_t step = broadcast.steps[operand][axis];
      Require(step >= 0 && step <= x.count(), "a step of ", step, " in ", x.shape);
      last += (broadcast.extents[axis] - 1) * step;
      Require(y.count() == 0 || last < x.count(), "element ", last, " of an operand of shape ",
              x.shape);
    }
    Require(y.count() == 0 || x.count() > 0, "an operand of shape ", x.shape, " gives ", y.shape);
  }
  if (broadcast.RepeatsNone(operands)) {
    for (int operand = 0; operand < operands; ++operand) {
      OperandCheck::SameLayout(check.input(operand), y);
    }
  } else {
    OperandCheck::IsPlain(y);
  }
  check.IsData(y);
}

static void CheckOperands(const Combine& op, const OperandCheck& check) {
  Require(op.kind >= Combination::kAdd && op.kind <= Combination::kPower, "combination ",
          static_cast<int>(op.kind), " is unknown");
  CheckSteps(op.broadcast, Combine::kInputs, check);
  for (int i = 0; i < Combine::kInputs; ++i) check.IsData(check.input(i));
}

static void CheckOperands(const Choose& op, const OperandCheck& check) {
  CheckSteps(op.broadcast, Choose::kInputs, check);
  for (int i = 0; i < 2; ++i) check.IsData(check.input(i));
  Require(!Is8Bit(check.input(2).dtype), "a condition of bytes");
  for (int i = 0; i < Choose::kInputs; ++i) OperandCheck::IsPlain(check.input(i));
  OperandCheck::IsPlain(check.output());
}

CAFFE_REGISTER_OP_FORM(Combine);
CAFFE_REGISTER_OP_FORM(Choose);

}  // namespace caffe::ops
