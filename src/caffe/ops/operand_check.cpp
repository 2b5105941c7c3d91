#include "caffe/ops/operand_check.hpp"

#include <algorithm>

namespace caffe {
const TensorDesc& OperandCheck::At(const Descs& operands, int i, const char* what) {
  const TensorDesc* found = Find(operands, i);
  Require(found != nullptr, what, i, " is missing");
  return *found;
}

void OperandCheck::AtMost(size_t most_inputs, size_t most_outputs) const {
  Require(inputs_.size() <= most_inputs, "it has ", inputs_.size(), " inputs, but takes ",
          most_inputs);
  for (size_t i = most_outputs; i < outputs_.size(); ++i)
    Require(outputs_[i] == nullptr, "it has a result ", i, ", which programs do not have");
}

void OperandCheck::AllLikeOutput() const {
  AtMost(inputs_.size());
  Require(!inputs_.empty(), "it has no input");
  IsData(output());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const TensorDesc& operand = input(static_cast<int>(i));
    IsData(operand);
    SameShape(operand, output());
    SameLayout(operand, output());
  }
}

void OperandCheck::IsNumbers(const TensorDesc& operand) {
  Require(Is8Bit(operand.dtype), "an operand is ", Name(operand.dtype),
          " where 8-bit numbers are read");
}

void OperandCheck::AreAlike(const TensorDesc& a, const TensorDesc& b) {
  Require(a.dtype == b.dtype, "operands are ", Name(a.dtype), " and ", Name(b.dtype),
          ", which must have one type");
}

void OperandCheck::IsData(const TensorDesc& operand) const {
  if (is_in_8_bits()) {
    Require(Is8Bit(operand.dtype) || operand.dtype == DType::kFloat, "an operand is ",
            Name(operand.dtype), " where 8-bit numbers or floats are computed");
    return;
  }
  Require(operand.dtype == data_, "an operand is ", Name(operand.dtype), " where ", Name(data_),
          " is computed");
}

void OperandCheck::IsParameter(int i, int64_t count) const {
  if (!has_input(i)) return;
  const TensorDesc& operand = input(i);
  const DType wanted = data_ == DType::kDouble ? DType::kDouble : DType::kFloat;
  Require(operand.dtype == wanted, "input ", i, " is ", Name(operand.dtype), "; it must be ",
          Name(wanted));
  IsPlain(operand);
  SameCount(operand.count(), count);
}

void OperandCheck::IsFactor(int i, int64_t count) const {
  if (!has_input(i) || input(i).dtype != data_) return IsParameter(i, count);
  IsPlain(input(i));
  SameCount(input(i).count(), count);
}

void OperandCheck::IsPlain(const TensorDesc& operand) {
  Require(operand.layout == Layout::kPlain, "an operand of ", operand.shape,
          " is channels-last, where it must be plain");
}

void OperandCheck::SameShape(const TensorDesc& a, const TensorDesc& b) {
  Require(a.shape == b.shape, "operands of ", a.shape, " and ", b.shape,
          ", which must have one shape");
}

void OperandCheck::SameLayout(const TensorDesc& a, const TensorDesc& b) {
  Require(a.layout == b.layout, "operands are ", Name(a.layout), " and ", Name(b.layout),
          ", which must have one layout");
}

void OperandCheck::SameCount(int64_t has, int64_t needs) {
  Require(has == needs, "an operand has ", has, " elements, but ", needs, " are needed");
}

void OperandCheck::Axis(int axis, const TensorDesc& operand) {
  Require(axis >= 0 && axis < operand.shape.num_axes(), "axis ", axis, " of an operand of ",
          operand.shape);
}

void OperandCheck::Epilogue(const ops::Epilogue& epilogue, size_t first) const {
  AtMost(std::max(first, inputs_.size()));
  std::vector<bool> is_read(inputs_.size());
  for (const ops::Pointwise& entry : epilogue) {
    Entry(entry);
    if (entry.operand < 0) continue;
    Require(static_cast<size_t>(entry.operand) >= first, "an epilogue reads input ", entry.operand,
            ", which is the op's own");
    is_read[static_cast<size_t>(entry.operand)] = true;
  }
  for (size_t i = first; i < inputs_.size(); ++i) Require(is_read[i], "nothing reads input ", i);
}

void OperandCheck::Entry(const ops::Pointwise& entry) const {
  using Kind = ops::Pointwise::Kind;
  const bool reads_none =
      entry.kind == Kind::kRelu || entry.kind == Kind::kClip || entry.kind == Kind::kSwish;
  if (reads_none) {
    Require(entry.operand == -1, "an epilogue names input ", entry.operand, ", but reads none");
    return;
  }
  const TensorDesc& operand = input(entry.operand);
  if (entry.kind == Kind::kAdd) {
    IsData(operand);
    SameShape(operand, output());
    SameLayout(operand, output());
  } else {
    Require(entry.kind == Kind::kScale || entry.kind == Kind::kShift,
            "an epilogue has an entry of ", "kind ", static_cast<int>(entry.kind),
            ", which programs do not have");
    Axis(1, output());
    IsParameter(entry.operand, output().shape[1]);
  }
}

}  // namespace caffe
