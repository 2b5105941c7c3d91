// OperandCheck: validates the operands that a file gives an op, before a kernel sees them.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "caffe/error.hpp"
#include "caffe/ops/epilogue.hpp"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe {

// Every check that fails throws InvalidArgument with both values.
class OperandCheck {
 public:
  // Null: the operand is absent.
  using Descs = std::vector<const TensorDesc*>;
  // `data`: type of the node's data and of its arithmetic.
  OperandCheck(Descs inputs, Descs outputs, DType data)
      : inputs_(std::move(inputs)), outputs_(std::move(outputs)), data_(data) {}

  size_t num_inputs() const { return inputs_.size(); }
  bool has_input(int i) const { return Find(inputs_, i) != nullptr; }
  bool has_output(int i) const { return Find(outputs_, i) != nullptr; }
  // A mandatory operand; throws if it is absent.
  const TensorDesc& input(int i) const { return At(inputs_, i, "input "); }
  const TensorDesc& output(int i = 0) const { return At(outputs_, i, "output "); }

  // There are at most `most_inputs` inputs, and only the first `most_outputs` outputs.
  void AtMost(size_t most_inputs, size_t most_outputs = 1) const;
  // Inputs [0, all) have the node's type and the result's shape and layout, and there are no
  // others.
  void AllLikeOutput() const;
  // True if the node computes in 8 bits: with numbers of both types, and possibly floats.
  bool is_in_8_bits() const { return data_ == DType::kInt8; }
  // The operand has the node's type.
  void IsData(const TensorDesc& operand) const;
  // The operand holds 8-bit numbers of either type.
  static void IsNumbers(const TensorDesc& operand);
  // Both have the same type.
  static void AreAlike(const TensorDesc& a, const TensorDesc& b);
  // The input is plain and has `count` elements of the type of the node's arithmetic.
  void IsParameter(int input, int64_t count) const;
  // The same, or `count` results of another node in the node's type, as a gate per channel.
  void IsFactor(int input, int64_t count) const;
  static void IsPlain(const TensorDesc& operand);
  static void SameShape(const TensorDesc& a, const TensorDesc& b);
  static void SameLayout(const TensorDesc& a, const TensorDesc& b);
  static void SameCount(int64_t has, int64_t needs);
  static void Axis(int axis, const TensorDesc& operand);
  // The epilogue's operands have the required shapes, and only they follow the first `first`
  // inputs.
  void Epilogue(const ops::Epilogue& epilogue, size_t first) const;

 private:
  static const TensorDesc* Find(const Descs& operands, int i) {
    return i >= 0 && static_cast<size_t>(i) < operands.size() ? operands[static_cast<size_t>(i)]
                                                              : nullptr;
  }
  static const TensorDesc& At(const Descs& operands, int i, const char* what);
  void Entry(const ops::Pointwise& entry) const;

  const Descs inputs_, outputs_;
  const DType data_;
};

}  // namespace caffe
