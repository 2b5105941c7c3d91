#include "caffe/ops/formula.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "caffe/ops/kernel.hpp"
#include "tests/support/op_case.hpp"

namespace caffe::cpu {
namespace {

using ops::Formula;
using ops::FormulaCode;

// tanh(x^2) + x, where the slot of x^2 becomes that of the result.
Formula ReusesItsSlot() {
  Formula op;
  op.inputs = 1, op.registers = 2, op.whole_inputs = 1;
  op.steps = {{FormulaCode::kSquare, 1, 0, 0, 0},
              {FormulaCode::kTanh, 2, 1, 1, 1},
              {FormulaCode::kAdd, 1, 2, 0, 0}};
  op.results = {1};
  return op;
}

// Several blocks of the kernel, and a rest.
std::vector<float> Numbers() {
  std::vector<float> numbers(1500);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 7) - 3;
  return numbers;
}

std::vector<float> RunFormula(const Formula& formula, std::vector<float> x, bool in_place) {
  const Op op = formula;
  const OperandDesc desc{{Shape{static_cast<int64_t>(x.size())}}};
  const std::vector<OperandDesc> operands = {desc};
  const Kernel kernel = std::get<Kernel>(
      KernelRegistry::Get()
          .Candidates(DeviceKind::kCpu, op.type())
          .front()
          .factory({op, operands, operands, *testing::DeviceOrNull(DeviceKind::kCpu)}));
  std::vector<float> y(x.size());
  TensorView input{desc, x.data()}, output{desc, in_place ? x.data() : y.data()};
  KernelContext context;
  context.inputs = {&input, 1};
  context.outputs = {&output, 1};
  kernel.run(context);
  return in_place ? x : y;
}

TEST(FormulaTest, AResultMayHaveTheInputsMemory) {
  const std::vector<float> x = Numbers();
  const std::vector<float> apart = RunFormula(ReusesItsSlot(), x, false);
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_NEAR(apart[i], std::tanh(x[i] * x[i]) + x[i], 1e-5) << i;
  EXPECT_EQ(RunFormula(ReusesItsSlot(), x, true), apart);
}

}  // namespace
}  // namespace caffe::cpu
