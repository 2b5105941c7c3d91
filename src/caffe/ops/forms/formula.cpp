#include "caffe/ops/formula.hpp"

#include <bitset>

#include "caffe/ops/forms/fields.hpp"

namespace caffe::ops {

using FormulaStep = Formula::Step;
CAFFE_FIELDS(FormulaStep, code, to, a, b, c)
CAFFE_FIELDS(Formula, inputs, registers, whole_inputs, conditions, constants, steps, results)
CAFFE_FIELDS(ReduceAxes, reduction)

static void CheckAtMost(const char* what, size_t has, size_t most) {
  Require(has <= most, "a formula of ", has, " ", what, "; at most ", most, " are possible");
}

// Each instruction reads slots that have a value, and writes an intermediate result.
static void CheckFormulaSteps(const Formula& op) {
  CheckAtMost("instructions", op.steps.size(), kMaxFormulaSteps);
  CheckAtMost("constants", op.constants.size(), kMaxFormulaConstants);
  CheckAtMost("slots", static_cast<size_t>(op.slots()), kMaxFormulaSlots);
  std::bitset<256> has_value;
  for (int i = 0; i < op.first_register(); ++i) has_value.set(static_cast<size_t>(i));
  for (const Formula::Step& step : op.steps) {
    Require(step.code < FormulaCode::kCount, "a formula has instruction ",
            static_cast<int>(step.code), ", which does not exist");
    const bool reads_values = has_value[step.a] && has_value[step.b] && has_value[step.c];
    Require(reads_values, "an instruction of a formula reads a slot that has no value");
    const bool is_apart = step.to != step.a && step.to != step.b && step.to != step.c;
    Require(step.to >= op.first_register() && step.to < op.slots() && is_apart,
            "an instruction of a formula writes slot ", static_cast<int>(step.to));
    has_value.set(step.to);
  }
  for (const uint8_t result : op.results)
    Require(has_value[result], "a formula's result is a slot that has no value");
}

static void CheckOperands(const Formula& op, const OperandCheck& check) {
  CheckAtMost("inputs", op.inputs, kMaxFormulaOperands);
  CheckFormulaSteps(op);
  check.AtMost(op.inputs);
  Require(check.num_inputs() == op.inputs && op.results.size() == 1, "a formula of ",
          static_cast<int>(op.inputs), " inputs and ", op.results.size(), " results has ",
          check.num_inputs(), " inputs and 1 result");
  const TensorDesc& y = check.output();
  check.IsData(y);
  std::vector<TensorDesc> inputs;
  for (int i = 0; i < op.inputs; ++i) {
    const TensorDesc& x = inputs.emplace_back(check.input(i));
    Require(!Is8Bit(x.dtype), "a formula of bytes");
    if (op.is_whole(static_cast<size_t>(i))) {
      OperandCheck::SameShape(x, y);
      OperandCheck::SameLayout(x, y);
    } else {
      OperandCheck::IsPlain(x);
    }
  }
  Require(!Is8Bit(y.dtype), "a formula whose result is bytes");
  static_cast<void>(SharedAxes(y, inputs));
}

static void CheckOperands(const ReduceAxes& op, const OperandCheck& check) {
  check.AtMost(1);
  const TensorDesc &x = check.input(0), &y = check.output();
  Require(op.reduction <= AxesReduction::kMax, "a reduction of kind ",
          static_cast<int>(op.reduction), ", which does not exist");
  for (const TensorDesc* operand : {&x, &y}) {
    OperandCheck::IsPlain(*operand);
    if (operand->dtype != DType::kFloat) check.IsData(*operand);  // statistics may be float
    Require(!Is8Bit(operand->dtype), "a reduction of bytes");
  }
  const std::vector<TensorDesc> operands = {x, y};
  static_cast<void>(SharedAxes(x, operands));
}

CAFFE_REGISTER_OP_FORM(Formula);
CAFFE_REGISTER_OP_FORM(ReduceAxes);

}  // namespace caffe::ops
