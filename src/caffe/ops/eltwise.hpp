// Ops between several tensors of one shape.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "caffe/ops/epilogue.hpp"
#include "caffe/ops/op.hpp"

namespace caffe::ops {

inline constexpr LayoutRule kFollowAllInputs{.inputs = OperandSet::All(), .outputs = {0}};

// (x_0, ..., x_n) -> (y):  y = sum of coefficients_i * x_i (all 1 if empty), then the epilogue,
// which must not read operands.
struct EltwiseSum {
  static constexpr std::string_view kName = "EltwiseSum";
  static constexpr OperandSet kItemInputs = OperandSet::All();
  static constexpr bool kInPlace = true;
  std::vector<float> coefficients;
  Epilogue epilogue = {};
  // True if all coefficients are 1.
  bool is_plain() const {
    return std::ranges::all_of(coefficients, [](float c) { return c == 1; });
  }
  std::string Attributes() const {
    return epilogue.empty() ? "" : EpilogueText(epilogue).substr(2);
  }
  LayoutRule layout_rule() const { return kFollowAllInputs; }
  double Flops(std::span<const TensorDesc> inputs, std::span<const TensorDesc> outputs) const {
    return static_cast<double>(inputs.size()) * static_cast<double>(outputs[0].count());
  }
};

// (x_0, ..., x_n) -> (y):  product.
struct EltwiseProd {
  static constexpr std::string_view kName = "EltwiseProd";
  static constexpr OperandSet kItemInputs = OperandSet::All();
  LayoutRule layout_rule() const { return kFollowAllInputs; }
};

// (y, dy, x_0, ..., x_n) -> (dx of x_index):  dy times the product of the other inputs; if not
// `stable`, dy * y / x_index.
struct EltwiseProdGrad {
  static constexpr std::string_view kName = "EltwiseProdGrad";
  int index = 0;
  bool stable = true;
  LayoutRule layout_rule() const { return kFollowAllInputs; }
};

// (x_0, ..., x_n) -> (y, mask):  maximum; mask is the index of the winner. Of the first two, x_0
// wins only if strictly greater; a later operand only if strictly greater than the best so far.
struct EltwiseMax {
  static constexpr std::string_view kName = "EltwiseMax";
  static constexpr OperandSet kItemInputs = OperandSet::All();
  LayoutRule layout_rule() const { return {.inputs = OperandSet::All(), .outputs = {0, 1}}; }
};

// (mask, dy) -> (dx of x_index):  dy where mask == index, else 0.
struct EltwiseMaxGrad {
  static constexpr std::string_view kName = "EltwiseMaxGrad";
  int index = 0;
  LayoutRule layout_rule() const { return kFollowBothInputs; }
};

}  // namespace caffe::ops
