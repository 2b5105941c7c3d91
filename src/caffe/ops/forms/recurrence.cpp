#include "caffe/ops/recurrence.hpp"

#include "caffe/ops/forms/fields.hpp"
#include "caffe/ops/window.hpp"

namespace caffe::ops {

CAFFE_FIELDS(LstmSteps, steps, items, width, reverse, projection)
CAFFE_FIELDS(GruSteps, steps, items, width, reverse, projection)
CAFFE_FIELDS(GruResetAfterSteps, steps, items, width, reverse, projection)
CAFFE_FIELDS(RnnSteps, steps, items, width, reverse, projection)

// Validates an operand of `count` numbers in any floating-point type.
static void IsRows(const TensorDesc& operand, int64_t count) {
  OperandCheck::IsPlain(operand);
  OperandCheck::SameCount(operand.count(), count);
  Require(!Is8Bit(operand.dtype), "rows of a recurrence are ", Name(operand.dtype),
          "; they must be floating-point numbers");
}

static void IsRowsOfData(const OperandCheck& check, const TensorDesc& operand, int64_t count) {
  IsRows(operand, count);
  check.IsData(operand);
}

// Inputs: products of `gates` numbers for each unit, then `matrices` weights, cont, `states`, of
// which the first is h, and `others`. Outputs: h, `saved` tensors that inference does not need, and
// the states.
static void CheckSteps(const Recurrence& op, const OperandCheck& check, int64_t gates, int matrices,
                       int states, int others = 0) {
  for (const int64_t size : {op.steps, op.items, op.width})
    Require(size >= 1 && size <= kMostPlaces, "a recurrence has a size of ", size);
  Require(op.items <= kMostPlaces / op.steps && op.width <= kMostPlaces / (gates * op.items),
          "a recurrence of ", op.Attributes(), " is too large");
  Require(op.projection >= 0 && op.projection < op.width, "a recurrence of width ", op.width,
          " is projected to ", op.projection);
  const int most = 1 + matrices + 1 + states + (op.projection > 0 ? 1 : 0) + others;
  Require(check.num_inputs() <= static_cast<size_t>(most), "a recurrence has ", check.num_inputs(),
          " inputs");
  const int64_t rows = op.steps * op.items;
  IsRowsOfData(check, check.input(0), rows * gates * op.width);
  for (int i = 1; i <= matrices; ++i)
    IsRowsOfData(check, check.input(i), gates / matrices * op.width * op.h_width());
  if (check.has_input(1 + matrices)) IsRows(check.input(1 + matrices), rows);
  const int first_state = 2 + matrices;
  for (int i = first_state; i < first_state + states; ++i) {
    if (check.has_input(i))
      IsRows(check.input(i), op.items * (i == first_state ? op.h_width() : op.width));
  }
  IsRowsOfData(check, check.output(), rows * op.h_width());
}

static void HasNoProjection(const Recurrence& op) {
  Require(op.projection == 0, "a recurrence other than LSTM is projected to ", op.projection);
}

static void CheckOperands(const LstmSteps& op, const OperandCheck& check) {
  CheckSteps(op, check, 4, 1, 2);
  if (op.projection > 0)
    IsRowsOfData(check, check.input(LstmSteps::kProjection), op.projection * op.width);
}
static void CheckOperands(const GruSteps& op, const OperandCheck& check) {
  HasNoProjection(op);
  CheckSteps(op, check, 3, 3, 1);
}
static void CheckOperands(const GruResetAfterSteps& op, const OperandCheck& check) {
  HasNoProjection(op);
  CheckSteps(op, check, 3, 3, 1, 1);
  IsRows(check.input(GruResetAfterSteps::kBias), op.width);
}
static void CheckOperands(const RnnSteps& op, const OperandCheck& check) {
  HasNoProjection(op);
  CheckSteps(op, check, 1, 1, 1);
}

CAFFE_REGISTER_OP_FORM(LstmSteps);
CAFFE_REGISTER_OP_FORM(GruSteps);
CAFFE_REGISTER_OP_FORM(GruResetAfterSteps);
CAFFE_REGISTER_OP_FORM(RnnSteps);

}  // namespace caffe::ops
