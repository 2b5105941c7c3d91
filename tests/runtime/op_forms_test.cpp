// Ops as they are written to files: uses the same cases as the tests of their kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/core/bytes.hpp"
#include "caffe/ops/op_form.hpp"
#include "tests/support/op_case.hpp"

namespace caffe {
namespace {

using testing::CaseOperand;
using testing::OpCase;

std::vector<TensorDesc> DescsOf(const std::vector<CaseOperand>& operands) {
  std::vector<TensorDesc> descs;
  for (const CaseOperand& operand : operands) {
    descs.push_back({operand.shape, operand.dtype.value_or(DType::kFloat),
                     operand.layout.value_or(Layout::kPlain)});
  }
  return descs;
}

OperandCheck::Descs Present(const std::vector<CaseOperand>& operands,
                            const std::vector<TensorDesc>& descs) {
  OperandCheck::Descs present;
  for (size_t i = 0; i < operands.size(); ++i)
    present.push_back(operands[i].is_present ? &descs[i] : nullptr);
  return present;
}

class OpFormsTest : public ::testing::TestWithParam<OpCase> {
 protected:
  // Excludes masks and other additional results, and epilogues of gradients.
  bool IsOfInference() const {
    if (const ops::Epilogue* epilogue = GetParam().op.epilogue()) {
      for (const ops::Pointwise& entry : *epilogue)
        if (entry.kind == ops::Pointwise::Kind::kReluGrad) return false;
    }
    for (size_t i = 1; i < GetParam().outputs.size(); ++i)
      if (GetParam().outputs[i].is_present) return false;
    return GetParam().outputs[0].is_present;
  }
  const OpForm* form_ = OpForms::Get().Find(GetParam().op.name());
  std::vector<TensorDesc> inputs_ = DescsOf(GetParam().inputs);
  std::vector<TensorDesc> outputs_ = DescsOf(GetParam().outputs);

  void Check() const {
    form_->check(GetParam().op, {Present(GetParam().inputs, inputs_),
                                 Present(GetParam().outputs, outputs_), DType::kFloat});
  }
};

TEST_P(OpFormsTest, IsReadAsItWasWritten) {
  ByteWriter out, again;
  form_->write(GetParam().op, out);
  ByteReader in(out.bytes());
  const Op read = form_->read(in);
  EXPECT_EQ(in.left(), 0u);
  EXPECT_EQ(read.Attributes(), GetParam().op.Attributes());
  form_->write(read, again);
  EXPECT_EQ(again.bytes(), out.bytes());
}

TEST_P(OpFormsTest, BytesThatEndEarlyAreRefused) {
  ByteWriter out;
  form_->write(GetParam().op, out);
  for (size_t size = 0; size < out.bytes().size(); ++size) {
    ByteReader in(std::span(out.bytes()).first(size));
    EXPECT_THROW(form_->read(in), InvalidArgument) << size;
  }
}

TEST_P(OpFormsTest, TakesItsOperandsAndNoOthers) {
  if (!IsOfInference()) GTEST_SKIP() << "nothing that inference has";
  ASSERT_NO_THROW(Check());
  const bool converts = GetParam().op.name() == "Cast" || GetParam().op.name() == "Reorder";
  const bool is_as_stored = GetParam().op.numeric_rule() == NumericRule::kAsStored;
  outputs_[0].dtype = is_as_stored ? DType::kUInt8 : DType::kDouble;
  if (!converts) {
    EXPECT_THROW(Check(), InvalidArgument) << "a result of another type";
  }
  outputs_[0].dtype = DType::kFloat;
  outputs_[0].shape = Shape{outputs_[0].shape.count() + 1, 2, 3, 5};
  EXPECT_THROW(Check(), InvalidArgument) << "a result of another shape";
}

std::vector<OpCase> CasesWithForms() {
  std::vector<OpCase> cases;
  for (const OpCase& one : testing::OpCases()) {
    if (OpForms::Get().Find(one.op.name()) != nullptr) cases.push_back(one);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Cases, OpFormsTest, ::testing::ValuesIn(CasesWithForms()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace caffe
