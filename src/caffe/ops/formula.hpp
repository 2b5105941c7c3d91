// Ops that compute formulas: a program of instructions for each element, and reductions over axes.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "caffe/ops/formula_codes.hpp"
#include "caffe/ops/op.hpp"

namespace caffe::ops {

// Limits of one Formula, which let kernels keep the program and its numbers in fixed memory.
inline constexpr int kMaxFormulaOperands = 16;  // inputs, and outputs
inline constexpr int kMaxFormulaSlots = 128;
inline constexpr int kMaxFormulaSteps = 256;
inline constexpr int kMaxFormulaConstants = 64;
inline constexpr int kMaxFormulaAxes = 8;  // in SharedAxes

// (x_0, ..., x_n) -> (y_0, ..., y_m):  runs the instructions for each element. All outputs have one
// shape, and inputs broadcast to it as in NumPy. An instruction reads and writes numbered slots:
// first the inputs', then the constants', then the intermediate results'.
struct Formula {
  static constexpr std::string_view kName = "Formula";
  static constexpr bool kInPlace = true;

  struct Step {
    FormulaCode code = FormulaCode::kAdd;
    uint8_t to = 0;  // an intermediate result, not one of the operands
    uint8_t a = 0, b = 0, c = 0;
  };

  uint8_t inputs = 0, registers = 0;  // `registers` counts the intermediate results' slots
  uint64_t whole_inputs = 0;          // bits of the inputs that have the outputs' shape
  uint64_t conditions = 0;  // bits of the inputs that are exact: rounded to 16 bits, one may be 0
  std::vector<double> constants;
  std::vector<Step> steps;
  std::vector<uint8_t> results;  // slot of each output

  int first_constant() const { return inputs; }
  int first_register() const { return inputs + static_cast<int>(constants.size()); }
  int slots() const { return first_register() + registers; }
  bool is_whole(size_t input) const { return whole_inputs >> input & 1u; }

  OperandSet exact_inputs() const {
    OperandSet exact;
    for (size_t i = 0; i < inputs; ++i) {
      if (conditions >> i & 1u) exact.insert(i);
    }
    return exact;
  }
  LayoutRule layout_rule() const {
    LayoutRule rule{.outputs = OperandSet::All()};
    for (int i = 0; i < inputs; ++i) {
      if (is_whole(static_cast<size_t>(i))) rule.inputs.insert(static_cast<size_t>(i));
    }
    return rule;
  }
  std::string Attributes() const { return StrCat("steps ", steps.size()); }
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc> outputs) const {
    return static_cast<double>(steps.size()) * static_cast<double>(outputs[0].count());
  }
};

enum class AxesReduction : uint8_t { kSum, kMean, kMax };

// (x) -> (y):  reduces the axes that have extent 1 in y, and the leading ones that y does not have.
// The maximum is NaN if an element is NaN. Sums are added in double.
struct ReduceAxes {
  static constexpr std::string_view kName = "ReduceAxes";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
  AxesReduction reduction = AxesReduction::kSum;

  std::string Attributes() const {
    return reduction == AxesReduction::kSum    ? "sum"
           : reduction == AxesReduction::kMean ? "mean"
                                               : "max";
  }
  double Flops(std::span<const TensorDesc> inputs, std::span<const TensorDesc>) const {
    return static_cast<double>(inputs[0].count());
  }
};

// The axes of a tensor in memory order, and the distances of operands' elements along them (0 where
// an operand is broadcast). Neighbouring axes that all operands can treat as one are joined.
struct SharedAxes {
  using Strides = std::array<int64_t, kMaxFormulaAxes>;

  int axes = 0;
  Strides extents = {};
  std::vector<Strides> strides;  // of each operand

  // Throws InvalidArgument if an operand does not broadcast to `whole`, or if more than
  // kMaxFormulaAxes axes remain.
  SharedAxes(const TensorDesc& whole, std::span<const TensorDesc> operands);

  // True if the operand's elements lie as those of the whole tensor.
  bool IsWhole(size_t operand) const;
  // True if the operand is one number.
  bool IsScalar(size_t operand) const;
};

// The description that all outputs share; the first one may be absent.
template <typename Operands>
const TensorDesc& FirstPresent(const Operands& outputs) {
  for (const auto& output : outputs) {
    if (output.present) return output;
  }
  return outputs[0];
}

// The shape that operands of two shapes broadcast to, as in NumPy. Throws InvalidArgument if there
// is none.
Shape BroadcastShape(const Shape& a, const Shape& b);

}  // namespace caffe::ops
