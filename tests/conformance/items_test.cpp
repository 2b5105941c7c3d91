// Ops with item inputs compute each item by itself: a batch gives the same numbers as its items,
// one after the other. split-batch relies on it.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "caffe/ops/fused.hpp"
#include "tests/support/op_case.hpp"

namespace caffe {
namespace {

using testing::CaseData;
using testing::CaseOperand;
using testing::Elements;
using testing::OpCase;

// True if the operand has as many items as the batch.
bool HasItems(const CaseOperand& operand, int64_t items) {
  return operand.shape.num_axes() > 0 && operand.shape[0] == items;
}

// The number of items of a case with item inputs; 0 if its operands do not consist of items, as
// split-batch requires, too.
int64_t ItemsOf(const OpCase& test) {
  const OperandSet of_items = test.op.item_inputs();
  if (!of_items.overlaps(OperandSet::All()) || test.outputs.empty()) return 0;
  const Shape& first = test.outputs[0].shape;
  const int64_t items = first.num_axes() == 0 ? 0 : first[0];
  const auto is_fitting = [&](const CaseOperand& operand) {
    return !operand.is_present || HasItems(operand, items);
  };
  for (size_t i = 0; i < test.inputs.size(); ++i) {
    if (of_items.contains(i) && !is_fitting(test.inputs[i])) return 0;
  }
  return std::ranges::all_of(test.outputs, is_fitting) ? items : 0;
}

Elements SliceOf(const Elements& all, int64_t item, int64_t items) {
  const auto size = static_cast<std::ptrdiff_t>(all.size()) / items;
  return {all.begin() + size * item, all.begin() + size * (item + 1)};
}

// The case, and its data, for one item.
OpCase CaseOfItem(OpCase test) {
  const OperandSet of_items = test.op.item_inputs();
  if (const auto* region = test.op.As<ops::Fused>()) test.op = region->ForItems(1);
  const auto cut = [](CaseOperand& operand) {
    if (operand.is_present) operand.shape = operand.shape.With(0, 1);
  };
  for (size_t i = 0; i < test.inputs.size(); ++i) {
    if (of_items.contains(i)) cut(test.inputs[i]);
  }
  for (CaseOperand& output : test.outputs) cut(output);
  return test;
}

CaseData DataOfItem(const OpCase& test, CaseData data, int64_t item, int64_t items) {
  for (size_t i = 0; i < test.inputs.size(); ++i) {
    if (test.op.item_inputs().contains(i)) data.inputs[i] = SliceOf(data.inputs[i], item, items);
  }
  for (Elements& output : data.outputs) output = SliceOf(output, item, items);
  return data;
}

TEST(ItemsTest, OpsWithItemInputsComputeEachItemByItself) {
  int cases = 0;
  for (const OpCase& test : testing::OpCases()) {
    const int64_t items = ItemsOf(test);
    if (items < 2) continue;
    const CaseData data = testing::MakeData(test, DType::kDouble);
    const std::vector<Elements> whole = testing::RunReference(test, false, data);
    for (int64_t item = 0; item < items; ++item) {
      const std::vector<Elements> one =
          testing::RunReference(CaseOfItem(test), false, DataOfItem(test, data, item, items));
      for (size_t i = 0; i < whole.size(); ++i)
        EXPECT_EQ(one[i], SliceOf(whole[i], item, items)) << test.name << ", item " << item;
    }
    ++cases;
  }
  EXPECT_GT(cases, 100);
}

}  // namespace
}  // namespace caffe
