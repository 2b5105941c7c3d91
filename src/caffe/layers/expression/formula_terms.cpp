#include "caffe/layers/expression/formula_terms.hpp"

#include <bit>
#include <set>

#include "caffe/error.hpp"

namespace caffe {

int FormulaTerms::Find(FormulaTerm term) {
  const Key key{static_cast<int>(term.kind),
                static_cast<int>(term.code),
                static_cast<int>(term.reduction),
                std::bit_cast<uint64_t>(term.number),
                term.input,
                term.operands,
                term.shape.dims()};
  const auto [found, is_new] = known_.try_emplace(key, size());
  if (is_new) terms_.push_back(std::move(term));
  return found->second;
}

int FormulaTerms::Number(double number) {
  return Find({.number = number});
}

int FormulaTerms::Input(int input, const Shape& shape) {
  return Find({.kind = FormulaTerm::Kind::kInput, .input = input, .shape = shape});
}

int FormulaTerms::Reduce(ops::AxesReduction reduction, int a, const Shape& to) {
  if (shape(a) == to) return a;
  // A sum's sign is changed afterwards, where there are fewer elements.
  const FormulaTerm& term = (*this)[a];
  if (reduction != ops::AxesReduction::kMax && term.kind == FormulaTerm::Kind::kFunction &&
      term.code == Code::kNegative)
    return Apply(Code::kNegative, Reduce(reduction, term.operands[0], to));
  return Find({.kind = FormulaTerm::Kind::kReduction,
               .reduction = reduction,
               .operands = {a, -1, -1},
               .shape = to});
}

// Powers that nets use are computed without pow.
int FormulaTerms::Power(int base, int exponent) {
  if (!IsNumber(exponent)) return -1;
  const double power = (*this)[exponent].number;
  if (power == 1) return base;
  if (power == 2) return Apply(Code::kSquare, base);
  if (power == 3) return Apply(Code::kMultiply, Apply(Code::kSquare, base), base);
  if (power == 0.5) return Apply(Code::kSqrt, base);
  if (power == -0.5) return Apply(Code::kRsqrt, base);
  if (power == -1) return Apply(Code::kDivide, Number(1), base);
  return -1;
}

int FormulaTerms::Apply(Code code, int a, int b, int c) {
  if (IsNumber(a) && (b < 0 || IsNumber(b)) && (c < 0 || IsNumber(c))) {
    const auto value = [&](int term) { return term < 0 ? 0.0 : (*this)[term].number; };
    return Number(ops::ApplyFormula<double>(code, value(a), value(b), value(c)));
  }
  if (code == Code::kMultiply && IsNumber(a) && (*this)[a].number == 1) return b;
  if ((code == Code::kMultiply || code == Code::kDivide) && IsNumber(b) && (*this)[b].number == 1)
    return a;
  if (code == Code::kPow) {
    if (const int power = Power(a, b); power >= 0) return power;
  }
  Shape shape = this->shape(a);
  if (b >= 0) shape = ops::BroadcastShape(shape, this->shape(b));
  if (c >= 0) shape = ops::BroadcastShape(shape, this->shape(c));
  return Find(
      {.kind = FormulaTerm::Kind::kFunction, .code = code, .operands = {a, b, c}, .shape = shape});
}

namespace {

Shape FormulaReducedShape(const Shape& shape, const std::vector<int64_t>& axes) {
  std::vector<int64_t> dims = shape.dims();
  if (axes.empty()) return Shape(std::vector<int64_t>(dims.size(), 1));
  std::set<int> seen;
  for (const int64_t axis : axes) {
    const int at = shape.CanonicalAxis(static_cast<int>(axis));
    Require(seen.insert(at).second, "axis ", axis, " is named twice");
    dims[static_cast<size_t>(at)] = 1;
  }
  return Shape(std::move(dims));
}

}  // namespace

int FormulaTerms::AddNode(const FormulaNode& node, const std::vector<int>& operands,
                          const std::vector<Shape>& bottoms) {
  switch (node.kind) {
    case FormulaNode::Kind::kNumber:
      return Number(node.number);
    case FormulaNode::Kind::kBottom:
      return Input(node.bottom, bottoms[static_cast<size_t>(node.bottom)]);
    case FormulaNode::Kind::kReduction:
      return Reduce(node.reduction, operands[0],
                    FormulaReducedShape(shape(operands[0]), node.axes));
    case FormulaNode::Kind::kFunction:
      break;
  }
  const auto operand = [&](size_t i) { return i < operands.size() ? operands[i] : -1; };
  return Apply(node.code, operand(0), operand(1), operand(2));
}

int FormulaTerms::Add(const FormulaTree& tree, const std::vector<Shape>& bottoms) {
  std::vector<int> terms;
  for (const FormulaNode& node : tree.nodes) {
    std::vector<int> operands;
    for (const int operand : node.operands) operands.push_back(terms[static_cast<size_t>(operand)]);
    try {
      terms.push_back(AddNode(node, operands, bottoms));
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(ShowPlace(tree.text, node.at, error.what()));
    }
  }
  return terms.back();
}

}  // namespace caffe
