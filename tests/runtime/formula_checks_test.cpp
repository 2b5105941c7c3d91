// Formulas that a file may contain: no kernel may leave its slots or its operands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "caffe/ops/formula.hpp"
#include "caffe/ops/op_form.hpp"
#include "tests/support/error_text.hpp"

namespace caffe {
namespace {

using ops::Formula;
using ops::FormulaCode;
using ::testing::HasSubstr;

// (x, y) -> tanh(x * 0.75 + y)
Formula Valid() {
  Formula op;
  op.inputs = 2, op.registers = 3, op.whole_inputs = 1;
  op.constants = {0.75};
  op.steps = {{FormulaCode::kMultiply, 3, 0, 2, 0},
              {FormulaCode::kAdd, 4, 3, 1, 0},
              {FormulaCode::kTanh, 5, 4, 4, 4}};
  op.results = {5};
  return op;
}

std::string ErrorOf(const std::function<void(Formula&)>& change, const Shape& x = {2, 3},
                    const Shape& y = {3}) {
  Formula op = Valid();
  change(op);
  const TensorDesc first{x}, second{y}, result{{2, 3}};
  try {
    OpForms::Get().Find(Formula::kName)->check(op, {{&first, &second}, {&result}, DType::kFloat});
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(FormulaChecks, SlotsHaveValuesAndLimits) {
  EXPECT_EQ(ErrorOf([](Formula&) {}), "");
  EXPECT_THAT(ErrorOf([](Formula& op) { op.steps[1].a = 5; }),
              HasSubstr("reads a slot that has no value"));
  EXPECT_THAT(ErrorOf([](Formula& op) { op.steps[1].c = 200; }),
              HasSubstr("reads a slot that has no value"));
  EXPECT_THAT(ErrorOf([](Formula& op) { op.steps[1].to = 6; }), HasSubstr("writes slot 6"));
  EXPECT_THAT(ErrorOf([](Formula& op) { op.steps[1].to = 2; }), HasSubstr("writes slot 2"));
  EXPECT_THAT(ErrorOf([](Formula& op) { op.steps[1].to = 3; }), HasSubstr("writes slot 3"));
  EXPECT_THAT(ErrorOf([](Formula& op) { op.results = {6}; }),
              HasSubstr("result is a slot that has no value"));
  EXPECT_THAT(ErrorOf([](Formula& op) { op.results = {4, 5}; }), HasSubstr("2 results"));
  EXPECT_THAT(ErrorOf([](Formula& op) { op.steps[0].code = FormulaCode{77}; }),
              HasSubstr("instruction 77, which does not exist"));
  EXPECT_THAT(ErrorOf([](Formula& op) { op.registers = 200; }),
              HasSubstr("a formula of 203 slots; at most 128 are possible"));
  EXPECT_THAT(ErrorOf([](Formula& op) { op.constants.resize(65); }),
              HasSubstr("a formula of 65 constants; at most 64"));
  EXPECT_THAT(ErrorOf([](Formula& op) { op.steps.resize(257, op.steps[0]); }),
              HasSubstr("a formula of 257 instructions; at most 256"));
  EXPECT_THAT(ErrorOf([](Formula& op) { op.inputs = 17; }),
              HasSubstr("a formula of 17 inputs; at most 16"));
}

TEST(FormulaChecks, OperandsBroadcastToTheResult) {
  const auto same = [](Formula&) {};
  EXPECT_EQ(ErrorOf(same, {2, 3}, {2, 1}), "");
  EXPECT_THAT(ErrorOf(same, {2, 3}, {2}), HasSubstr("shape 2 does not broadcast to 2x3"));
  EXPECT_THAT(ErrorOf(same, {2, 3}, {1, 2, 3}), HasSubstr("shape 1x2x3 does not broadcast to 2x3"));
  EXPECT_THAT(ErrorOf(same, {1, 3}, {3}), HasSubstr("operands of 1x3 and 2x3"));
}

}  // namespace
}  // namespace caffe
