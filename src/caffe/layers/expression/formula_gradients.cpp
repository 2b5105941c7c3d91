// Reverse-mode differentiation of terms.
#include <algorithm>
#include <map>
#include <numbers>

#include "caffe/layers/expression/formula_terms.hpp"

namespace caffe {
namespace {

// Shapes are aligned at their last axis; an axis that a shape does not have counts as 1.
int64_t ExtentFromEnd(const Shape& shape, int axis) {
  return axis <= shape.num_axes() ? shape[-axis] : 1;
}

class FormulaDifferentiation {
  using Code = ops::FormulaCode;

 public:
  FormulaDifferentiation(FormulaTerms& terms, int result, const std::vector<bool>& is_wanted)
      : terms_(terms), contributions_(static_cast<size_t>(result) + 1) {
    for (int i = 0; i <= result; ++i) {
      const FormulaTerm& term = terms[i];
      bool depends =
          term.kind == FormulaTerm::Kind::kInput && is_wanted[static_cast<size_t>(term.input)];
      for (int k = 0; k < term.num_operands(); ++k) depends |= depends_[At(Operand(term, k))];
      depends_.push_back(depends);
    }
  }

  std::vector<int> Run(int result, int dresult, size_t inputs) {
    std::vector<int> gradients(inputs, -1);
    contributions_[At(result)].push_back(dresult);
    for (int i = result; i >= 0; --i) {
      if (!depends_[At(i)] || contributions_[At(i)].empty()) continue;
      const int gradient = Sum(i);
      const FormulaTerm term = terms_[i];
      if (term.kind == FormulaTerm::Kind::kInput)
        gradients[static_cast<size_t>(term.input)] = gradient;
      if (term.kind == FormulaTerm::Kind::kReduction) OfReduction(i, term, gradient);
      if (term.kind == FormulaTerm::Kind::kFunction) OfFunction(i, term, gradient);
    }
    return gradients;
  }

 private:
  static size_t At(int term) { return static_cast<size_t>(term); }
  static int Operand(const FormulaTerm& term, int k) {
    return term.operands[static_cast<size_t>(k)];
  }

  int Number(double number) { return terms_.Number(number); }
  int Apply(Code code, int a, int b = -1, int c = -1) { return terms_.Apply(code, a, b, c); }
  int Times(int a, int b) { return Apply(Code::kMultiply, a, b); }
  int Over(int a, int b) { return Apply(Code::kDivide, a, b); }
  int Minus(int a, int b) { return Apply(Code::kSubtract, a, b); }
  int Negative(int a) { return Apply(Code::kNegative, a); }
  // g where the condition holds, else 0; unlike a product, also for an infinite g.
  int Where(int condition, int g) { return Apply(Code::kWhere, condition, g, Number(0)); }
  // g where a < b, half of it where they are equal.
  int Share(int a, int b, int g) {
    const int ties = Where(Apply(Code::kEqual, a, b), Times(g, Number(0.5)));
    return Apply(Code::kWhere, Apply(Code::kLess, a, b), g, ties);
  }

  // The sum of the contributions to a term. Those of one shape are added before they are reduced.
  int Sum(int term) {
    std::map<std::vector<int64_t>, int> sums;
    for (const int each : contributions_[At(term)]) {
      const auto [found, is_new] = sums.try_emplace(terms_.shape(each).dims(), each);
      if (!is_new) found->second = Apply(Code::kAdd, found->second, each);
    }
    int sum = -1;
    for (const auto& [dims, of_shape] : sums) {
      const int reduced = terms_.Reduce(ops::AxesReduction::kSum, of_shape,
                                        Common(Shape(dims), terms_.shape(term)));
      sum = sum < 0 ? reduced : Apply(Code::kAdd, sum, reduced);
    }
    return sum;
  }
  // The smaller one of two extents, for the axes that both shapes have.
  static Shape Common(const Shape& a, const Shape& b) {
    const int axes = std::min(a.num_axes(), b.num_axes());
    std::vector<int64_t> dims(static_cast<size_t>(axes));
    for (int axis = 1; axis <= axes; ++axis)
      dims[static_cast<size_t>(axes - axis)] = b[-axis] == 1 ? 1 : a[-axis];
    return Shape(std::move(dims));
  }

  // Adds a gradient to operand k of `term`. Where the operand broadcasts and the gradient is one
  // number for all its copies, the sum over the copies is a product.
  void Give(int term, int k, int gradient) {
    const int operand = Operand(terms_[term], k);
    if (!depends_[At(operand)]) return;
    const Shape whole = terms_.shape(term);
    double copies = 1;
    for (int axis = 1; axis <= whole.num_axes(); ++axis) {
      const bool is_broadcast = ExtentFromEnd(terms_.shape(operand), axis) == 1;
      if (is_broadcast && ExtentFromEnd(terms_.shape(gradient), axis) == 1)
        copies *= static_cast<double>(whole[-axis]);
    }
    contributions_[At(operand)].push_back(Times(gradient, Number(copies)));
  }

  // Elements that share the maximum share its gradient.
  void OfReduction(int y, const FormulaTerm& term, int g) {
    const int a = Operand(term, 0);
    if (!depends_[At(a)]) return;
    const auto length =
        static_cast<double>(terms_.shape(a).count()) / static_cast<double>(term.shape.count());
    switch (term.reduction) {
      case ops::AxesReduction::kSum:
        break;
      case ops::AxesReduction::kMean:
        g = Times(g, Number(1 / length));
        break;
      case ops::AxesReduction::kMax: {
        const int is_largest = Apply(Code::kEqual, a, y);
        const int ties = terms_.Reduce(ops::AxesReduction::kSum, is_largest, term.shape);
        g = Where(is_largest, Over(g, ties));
        break;
      }
    }
    contributions_[At(a)].push_back(g);
  }

  void OfFunction(int y, const FormulaTerm& term, int g) {
    const int a = Operand(term, 0), b = Operand(term, 1), c = Operand(term, 2);
    const auto give = [&](int k, int gradient) { Give(y, k, gradient); };
    switch (term.code) {
      case Code::kAdd:
        give(0, g), give(1, g);
        return;
      case Code::kSubtract:
        give(0, g), give(1, Negative(g));
        return;
      case Code::kMultiply:
        give(0, Times(g, b)), give(1, Times(g, a));
        return;
      case Code::kDivide:
        give(0, Over(g, b));
        if (depends_[At(b)]) give(1, Negative(Times(g, Over(y, b))));
        return;
      case Code::kPow:
        return OfPower(y, a, b, g);
      case Code::kMin:
        give(0, Share(a, b, g)), give(1, Share(b, a, g));
        return;
      case Code::kMax:
        give(0, Share(b, a, g)), give(1, Share(a, b, g));
        return;
      case Code::kWhere:
        give(1, Where(a, g)), give(2, Apply(Code::kWhere, a, Number(0), g));
        return;
      case Code::kClip: {
        const int is_above = Apply(Code::kLess, c, Apply(Code::kMax, a, b));
        const int is_below = Apply(Code::kLess, a, b);
        const int within = Apply(Code::kWhere, is_above, Number(0), g);
        give(0, Apply(Code::kWhere, is_below, Number(0), within));
        give(1, Where(is_below, within)), give(2, Where(is_above, g));
        return;
      }
      default:
        if (const int slope = Slope(term.code, a, y); slope >= 0) give(0, Times(g, slope));
        if (term.code == Code::kRelu) give(0, Where(Apply(Code::kLess, Number(0), a), g));
    }
  }

  // a^(b - 1) is not used where b is 0, nor log(a) where a is 0 and b is not negative: there the
  // gradients are 0.
  void OfPower(int y, int a, int b, int g) {
    const bool is_constant = terms_[b].kind == FormulaTerm::Kind::kNumber && terms_[b].number == 0;
    if (depends_[At(a)] && !is_constant) {
      const int slope = Times(b, Apply(Code::kPow, a, Minus(b, Number(1))));
      const bool is_number = terms_[b].kind == FormulaTerm::Kind::kNumber;
      const int is_zero = is_number ? -1 : Apply(Code::kEqual, b, Number(0));
      Give(y, 0, Times(g, is_number ? slope : Apply(Code::kWhere, is_zero, Number(0), slope)));
    }
    if (depends_[At(b)]) {
      const int slope = Times(y, Apply(Code::kLog, a));
      const int is_zero =
          Times(Apply(Code::kEqual, a, Number(0)), Apply(Code::kLessEqual, Number(0), b));
      Give(y, 1, Times(g, Apply(Code::kWhere, is_zero, Number(0), slope)));
    }
  }

  // dy / da of a smooth function of one operand; -1: it is 0, or not a factor.
  int Slope(Code code, int a, int y) {
    switch (code) {
      case Code::kNegative:
        return Number(-1);
      case Code::kAbs:
        return Apply(Code::kSign, a);
      case Code::kSquare:
        return Times(Number(2), a);
      case Code::kSqrt:
        return Over(Number(0.5), y);
      case Code::kRsqrt:
        return Times(Number(-0.5), Times(y, Apply(Code::kSquare, y)));
      case Code::kExp:
        return y;
      case Code::kLog:
        return Over(Number(1), a);
      case Code::kSin:
        return Apply(Code::kCos, a);
      case Code::kCos:
        return Negative(Apply(Code::kSin, a));
      case Code::kTanh:
        return Minus(Number(1), Apply(Code::kSquare, y));
      case Code::kSigmoid:
        return Times(y, Minus(Number(1), y));
      case Code::kSoftplus:
        return Apply(Code::kExp, Minus(a, y));  // small values keep their digits
      case Code::kErf:
        return Times(Number(2 * std::numbers::inv_sqrtpi),
                     Apply(Code::kExp, Negative(Apply(Code::kSquare, a))));
      case Code::kGelu: {
        const int p = Apply(Code::kErf, Times(a, Number(std::numbers::sqrt2 / 2)));
        const int probability = Apply(Code::kAdd, Times(Number(0.5), p), Number(0.5));
        const int density = Times(Number(std::numbers::inv_sqrtpi / std::numbers::sqrt2),
                                  Apply(Code::kExp, Times(Number(-0.5), Apply(Code::kSquare, a))));
        return Apply(Code::kAdd, probability, Times(a, density));
      }
      default:
        return -1;
    }
  }

  FormulaTerms& terms_;
  std::vector<bool> depends_;
  std::vector<std::vector<int>> contributions_;
};

}  // namespace

std::vector<int> FormulaGradients(FormulaTerms& terms, int result, int dresult,
                                  const std::vector<bool>& is_wanted) {
  return FormulaDifferentiation(terms, result, is_wanted).Run(result, dresult, is_wanted.size());
}

}  // namespace caffe
