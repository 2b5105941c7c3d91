// Parses formulas of Expression layers, as in "x * sigmoid(1.702 * x)". docs/expressions.md has the
// grammar.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "caffe/ops/formula.hpp"

namespace caffe {

// Hostile texts must not take all memory or the stack.
inline constexpr size_t kMaxFormulaText = 4000;
inline constexpr int kMaxFormulaDepth = 64;

struct FormulaNode {
  enum class Kind { kNumber, kBottom, kFunction, kReduction };

  Kind kind = Kind::kNumber;
  size_t at = 0;              // where its name or operator begins in the text
  std::vector<int> operands;  // indexes of earlier nodes
  double number = 0;
  int bottom = 0;
  ops::FormulaCode code = ops::FormulaCode::kAdd;
  ops::AxesReduction reduction = ops::AxesReduction::kSum;
  std::vector<int64_t> axes;  // of a reduction; empty: all
};

// Nodes come after their operands; the last one is the result.
struct FormulaTree {
  std::string text;
  std::vector<FormulaNode> nodes;
};

// `names` are those of the bottoms. Throws InvalidArgument that shows the place, also for names
// that cannot be used and for bottoms that the formula does not use.
FormulaTree ParseFormula(const std::string& text, const std::vector<std::string>& names);

// "<what>" and below it the text with a caret under its byte `at`.
std::string ShowPlace(std::string_view text, size_t at, std::string_view what);

}  // namespace caffe
