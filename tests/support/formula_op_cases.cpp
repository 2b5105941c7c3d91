#include "caffe/ops/formula.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {
namespace {

using ops::Formula;
using ops::FormulaCode;

// One instruction of its inputs.
Formula Single(FormulaCode code) {
  Formula op;
  const int operands = ops::FormulaArity(code);
  op.inputs = static_cast<uint8_t>(operands);
  op.registers = 1;
  op.whole_inputs = (uint64_t{1} << operands) - 1;
  Formula::Step step{code, op.inputs};
  if (operands > 1) step.b = 1;
  if (operands > 2) step.c = 2;
  op.steps = {step};
  op.results = {op.inputs};
  return op;
}

// (x, b) -> (x * 0.75 + b, tanh of it), the bits of `whole` being those of inputs with x's shape.
Formula ScaledSum(uint64_t whole) {
  Formula op;
  op.inputs = 2, op.registers = 3, op.whole_inputs = whole;
  op.constants = {0.75};
  op.steps = {{FormulaCode::kMultiply, 3, 0, 2, 0},
              {FormulaCode::kAdd, 4, 3, 1, 0},
              {FormulaCode::kTanh, 5, 4, 0, 0}};
  op.results = {4, 5};
  return op;
}

}  // namespace

void AddFormulaCases(std::vector<OpCase>* cases) {
  const auto add = [&](const std::string& name, Op op, std::vector<CaseOperand> in,
                       std::vector<CaseOperand> out) {
    cases->push_back({name, std::move(op), std::move(in), std::move(out), {}});
  };
  const CaseOperand x = T({2, 5, 4, 9}), positive = x.In(0.25, 2);
#define CAFFE_FORMULA_CASE(name, operands) {#name, FormulaCode::k##name},
  const std::vector<std::pair<std::string, FormulaCode>> codes = {
      CAFFE_FORMULA_CODES(CAFFE_FORMULA_CASE)};
#undef CAFFE_FORMULA_CASE
  for (const auto& [name, code] : codes) {
    const bool is_of_positive = code == FormulaCode::kPow || code == FormulaCode::kLog ||
                                code == FormulaCode::kSqrt || code == FormulaCode::kRsqrt ||
                                code == FormulaCode::kDivide;
    // Both sides of a jump must see the same number.
    const bool jumps = code == FormulaCode::kFloor || code == FormulaCode::kRound ||
                       code == FormulaCode::kEqual || code == FormulaCode::kLessEqual ||
                       code == FormulaCode::kWhere;
    const CaseOperand operand = is_of_positive ? positive : jumps ? x.Labels(4) : x;
    add("Formula" + name, Single(code),
        std::vector<CaseOperand>(static_cast<size_t>(ops::FormulaArity(code)), operand), {x});
  }
  Formula sum = ScaledSum(1);
  sum.results = {5};
  add("FormulaOfOneResult", sum, {x, T({5, 1, 1})}, {x});
  add("FormulaOfTwoResults", ScaledSum(3), {x, x}, {x, x});
  add("FormulaWithoutAResult", ScaledSum(3), {x, x}, {Absent(), x});
  add("FormulaPerChannel", ScaledSum(1), {x, T({5, 1, 1})}, {x, x});
  add("FormulaPerColumn", ScaledSum(1), {x, T({9})}, {x, x});
  add("FormulaPerRow", ScaledSum(1), {x, T({2, 5, 4, 1})}, {x, x});
  add("FormulaPerItem", ScaledSum(1), {x, T({2, 1, 1, 9})}, {x, x});
  add("FormulaOfANumber", ScaledSum(1), {x, T({})}, {x, x});
  add("FormulaOfParameters", ScaledSum(1), {x, T({5, 1, 1}).Wide()}, {x, x});
  Formula choice = Single(FormulaCode::kWhere);  // (a, b, condition) -> where(condition, a, b)
  choice.steps = {{FormulaCode::kWhere, 3, 2, 0, 1}};
  choice.conditions = 4;
  add("FormulaOfACondition", choice, {x, x, x.Labels(2).Wide()}, {x});
  choice.whole_inputs = 1;
  add("FormulaOfASmallCondition", choice, {x, T({9}), T({5, 1, 1}).Labels(2).Wide()}, {x});
  const CaseOperand table = T({3, 7});
  add("FormulaOfRowAndColumn", ScaledSum(0), {T({3, 1}), T({7})}, {table, table});
  const CaseOperand many = T({3, 7, 700});
  add("FormulaLong", ScaledSum(1), {many, T({7, 1})}, {many, many});
  using ops::AxesReduction;
  for (const auto& [name, reduction] :
       std::vector<std::pair<std::string, AxesReduction>>{{"Sum", AxesReduction::kSum},
                                                          {"Mean", AxesReduction::kMean},
                                                          {"Max", AxesReduction::kMax}}) {
    const ops::ReduceAxes op{reduction};
    const CaseOperand from = T({3, 5, 4, 70});
    for (const std::vector<int64_t>& to : std::vector<std::vector<int64_t>>{{3, 5, 4, 1},
                                                                            {3, 5, 1, 70},
                                                                            {3, 1, 4, 70},
                                                                            {1, 5, 1, 70},
                                                                            {3, 1, 4, 1},
                                                                            {5, 1, 1},
                                                                            {70},
                                                                            {}}) {
      add("ReduceAxes" + name + Shape(to).ToString(), op, {from}, {T(to)});
    }
    add("ReduceAxes" + name + "Statistics", op, {from}, {T({3, 5, 4, 1}).Wide()});
    add("ReduceAxes" + name + "Long", op, {T({3, 5000})}, {T({3, 1})});
    add("ReduceAxes" + name + "LongColumns", op, {T({2, 3000, 40})}, {T({1, 1, 40})});
  }
}

}  // namespace caffe::testing
