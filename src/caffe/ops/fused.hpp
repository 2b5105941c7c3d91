// Several ops as one node: a region of the graph. Its results are those of its members, run in
// turn; kernels that serve a region need not store the tensors between its members.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/ops/op.hpp"

namespace caffe::ops {

struct CAFFE_EXPORT Fused {
  static constexpr std::string_view kName = "Fused";

  // Where a member's operand is.
  struct Place {
    enum class Kind : uint8_t { kAbsent, kInput, kOutput, kInner };
    Kind kind = Kind::kAbsent;
    int index = 0;  // among the node's inputs, its outputs or `inner`
    bool operator==(const Place&) const = default;
  };
  static Place Input(int i) { return {Place::Kind::kInput, i}; }
  static Place Output(int i) { return {Place::Kind::kOutput, i}; }
  static Place Inner(int i) { return {Place::Kind::kInner, i}; }

  struct Member {
    Op op;
    std::vector<Place> inputs, outputs;
  };
  // A tensor that only members use.
  struct InnerTensor {
    Shape shape;
    std::optional<DType> dtype = {};  // absent: the type of the node's first input
    float scale = 1;                  // of numbers in 8 bits
  };

  std::vector<Member> members;  // in the order in which they run
  std::vector<InnerTensor> inner = {};

  // True if the members have these names, in this order.
  bool Is(std::initializer_list<std::string_view> names) const;
  // The op of a member, which must have this type.
  template <typename T>
  const T& Get(size_t member) const {
    return *members[member].op.As<T>();
  }
  // Index of a member's operand among the node's inputs; -1: absent, or a result of a member.
  int InputOf(size_t member, int operand) const;
  // The inner tensors in the types and layouts that they have with these operands.
  std::vector<TensorDesc> InnerDescs(std::span<const TensorDesc> inputs,
                                     std::span<const TensorDesc> outputs) const;

  // "Conv[kernel 3x3] ChannelStatistics"
  std::string Attributes() const;
  LayoutRule layout_rule() const;
  // The rule of products if a member has it.
  NumericRule numeric_rule() const;
  OperandSet updates() const;
  // Empty unless all members have item inputs and the tensors between them consist of items.
  OperandSet item_inputs() const;
  // The region for another number of items. It must have item inputs.
  Fused ForItems(int64_t items) const;
  // True if output 0 may share an input's memory because no member reads an input after it has
  // been written.
  bool in_place() const;
  double Flops(std::span<const TensorDesc> inputs, std::span<const TensorDesc> outputs) const;
};

}  // namespace caffe::ops
