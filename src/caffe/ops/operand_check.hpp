// OperandCheck: what a node of a file gives its op, looked at before a kernel is.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "caffe/error.hpp"
#include "caffe/ops/epilogue.hpp"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe {

// Every function that finds something wrong throws InvalidArgument with both values.
class OperandCheck {
 public:
  // Null: left out.
  using Descs = std::vector<const TensorDesc*>;
  // Of a node whose data, and arithmetic, are of type `data`.
  OperandCheck(Descs inputs, Descs outputs, DType data)
      : inputs_(std::move(inputs)), outputs_(std::move(outputs)), data_(data) {}

  size_t num_inputs() const { return inputs_.size(); }
  bool has_input(int i) const { return Find(inputs_, i) != nullptr; }
  // One that must be there.
  const TensorDesc& input(int i) const { return At(inputs_, i, "input "); }
  const TensorDesc& output(int i = 0) const { return At(outputs_, i, "output "); }

  // At most so many inputs, and output 0 alone.
  void AtMost(size_t most_inputs) const;
  // Inputs [0, all) of the node's type, with the result's shape and layout, and no others.
  void AllLikeOutput() const;
  // Whether the node computes in 8 bits: numbers of both types, or floats beside them.
  bool is_in_8_bits() const { return data_ == DType::kInt8; }
  // Of the node's type.
  void IsData(const TensorDesc& operand) const;
  // 8-bit numbers of either type.
  static void IsNumbers(const TensorDesc& operand);
  // Of one type.
  static void AreAlike(const TensorDesc& a, const TensorDesc& b);
  // Plain, `count` numbers, in the type of the node's arithmetic.
  void IsParameter(int input, int64_t count) const;
  // The same, or `count` results of another node, in the node's type: a gate per channel.
  void IsFactor(int input, int64_t count) const;
  static void IsPlain(const TensorDesc& operand);
  static void SameShape(const TensorDesc& a, const TensorDesc& b);
  static void SameLayout(const TensorDesc& a, const TensorDesc& b);
  static void SameCount(int64_t has, int64_t needs);
  static void Axis(int axis, const TensorDesc& operand);
  // What entries read has the shape that they need, and only they may follow the first `first`
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
