// FormulaTerms: what a formula computes for bottoms of certain shapes. Equal terms exist once.
#pragma once

#include <array>
#include <map>
#include <tuple>
#include <vector>

#include "caffe/layers/expression/formula_tree.hpp"
#include "caffe/ops/formula.hpp"
#include "caffe/shape.hpp"

namespace caffe {

struct FormulaTerm {
  enum class Kind : uint8_t { kNumber, kInput, kFunction, kReduction };

  Kind kind = Kind::kNumber;
  ops::FormulaCode code = ops::FormulaCode::kAdd;
  ops::AxesReduction reduction = ops::AxesReduction::kSum;
  double number = 0;
  int input = 0;
  std::array<int, 3> operands = {-1, -1, -1};  // indexes of earlier terms; -1: none
  Shape shape;

  int num_operands() const {
    return kind == Kind::kFunction ? ops::FormulaArity(code) : kind == Kind::kReduction ? 1 : 0;
  }
};

class FormulaTerms {
 public:
  using Code = ops::FormulaCode;

  int Number(double number);
  int Input(int input, const Shape& shape);
  // Computes functions of numbers at once.
  int Apply(Code code, int a, int b = -1, int c = -1);
  int Reduce(ops::AxesReduction reduction, int a, const Shape& to);

  // Adds the formula's terms and returns the result's. Throws InvalidArgument, with the place, for
  // shapes that do not fit.
  int Add(const FormulaTree& tree, const std::vector<Shape>& bottoms);

  const FormulaTerm& operator[](int term) const { return terms_[static_cast<size_t>(term)]; }
  const Shape& shape(int term) const { return (*this)[term].shape; }
  int size() const { return static_cast<int>(terms_.size()); }

 private:
  using Key = std::tuple<int, int, int, uint64_t, int, std::array<int, 3>, std::vector<int64_t>>;

  int Find(FormulaTerm term);
  int AddNode(const FormulaNode& node, const std::vector<int>& operands,
              const std::vector<Shape>& bottoms);
  bool IsNumber(int term) const {
    return term >= 0 && (*this)[term].kind == FormulaTerm::Kind::kNumber;
  }
  int Power(int base, int exponent);

  std::vector<FormulaTerm> terms_;
  std::map<Key, int> known_;
};

// The gradients of input 0, 1, ... of `result`, whose gradient is `dresult`, for those that are
// wanted. -1: it is zero. A gradient's shape may have extents of 1 where the input has more: then
// it broadcasts.
std::vector<int> FormulaGradients(FormulaTerms& terms, int result, int dresult,
                                  const std::vector<bool>& is_wanted);

}  // namespace caffe
