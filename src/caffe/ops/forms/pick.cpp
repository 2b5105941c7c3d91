#include "caffe/ops/pick.hpp"

#include "caffe/ops/forms/fields.hpp"

namespace caffe::ops {

CAFFE_FIELDS(PickedAxis, extent, count, inner)
CAFFE_FIELDS(Take, axis)
CAFFE_FIELDS(PutElements, axis, adds)
CAFFE_FIELDS(TopK, axis, largest)

// Checks that `whole` has rows of axis.extent elements and `part` the same number of rows with
// axis.count elements, both in the node's type.
static void CheckRows(const PickedAxis& axis, const TensorDesc& whole, const TensorDesc& part,
                      const OperandCheck& check) {
  Require(axis.extent >= 1 && axis.count >= 1 && axis.inner >= 1 && axis.extent <= whole.count() &&
              axis.inner <= whole.count() && axis.count <= part.count(),
          axis.count, " of ", axis.extent, " elements in steps of ", axis.inner, ", from ",
          whole.shape, " to ", part.shape);
  const int64_t row = axis.extent * axis.inner;
  Require(whole.count() % row == 0, whole.shape, " has no rows of ", axis.extent, " x ",
          axis.inner);
  Require(part.count() % (axis.count * axis.inner) == 0, part.shape, " has no rows of ", axis.count,
          " x ", axis.inner);
  OperandCheck::SameCount(part.count() / (axis.count * axis.inner), whole.count() / row);
  for (const TensorDesc* operand : {&whole, &part}) {
    check.IsData(*operand);
    OperandCheck::IsPlain(*operand);
  }
}

static void CheckIndex(const TensorDesc& index, int64_t count) {
  Require(!Is8Bit(index.dtype), "an index of bytes");
  OperandCheck::IsPlain(index);
  OperandCheck::SameCount(index.count(), count);
}

static void CheckOperands(const Take& op, const OperandCheck& check) {
  check.AtMost(2);
  CheckRows(op.axis, check.input(0), check.output(), check);
  CheckIndex(check.input(1), op.axis.count);
}

static void CheckOperands(const PutElements& op, const OperandCheck& check) {
  check.AtMost(3);
  CheckRows(op.axis, check.output(), check.input(0), check);
  CheckIndex(check.input(1), check.input(0).count());
  if (!check.has_input(2)) return;
  check.IsData(check.input(2));
  OperandCheck::IsPlain(check.input(2));
  OperandCheck::SameCount(check.input(2).count(), check.output().count());
}

static void CheckOperands(const TopK& op, const OperandCheck& check) {
  check.AtMost(1, 2);
  CheckRows(op.axis, check.input(0), check.output(), check);
  Require(op.axis.count <= op.axis.extent, op.axis.count, " of ", op.axis.extent,
          " elements are picked");
  if (check.has_output(1)) CheckIndex(check.output(1), check.output().count());
}

CAFFE_REGISTER_OP_FORM(Take);
CAFFE_REGISTER_OP_FORM(PutElements);
CAFFE_REGISTER_OP_FORM(TopK);

}  // namespace caffe::ops
