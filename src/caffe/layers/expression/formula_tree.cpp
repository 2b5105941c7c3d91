#include "caffe/layers/expression/formula_tree.hpp"

#include <algorithm>
#include <charconv>
#include <numbers>
#include <utility>

#include "caffe/core/nearest_name.hpp"
#include "caffe/core/printable.hpp"
#include "caffe/core/split.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

using ops::AxesReduction;
using ops::FormulaCode;

struct FormulaFunction {
  std::string_view name;
  FormulaCode code;
};

constexpr FormulaFunction kFormulaFunctions[] = {
    {"abs", FormulaCode::kAbs},         {"clip", FormulaCode::kClip},
    {"cos", FormulaCode::kCos},         {"erf", FormulaCode::kErf},
    {"exp", FormulaCode::kExp},         {"floor", FormulaCode::kFloor},
    {"gelu", FormulaCode::kGelu},       {"log", FormulaCode::kLog},
    {"max", FormulaCode::kMax},         {"min", FormulaCode::kMin},
    {"pow", FormulaCode::kPow},         {"relu", FormulaCode::kRelu},
    {"round", FormulaCode::kRound},     {"rsqrt", FormulaCode::kRsqrt},
    {"sigmoid", FormulaCode::kSigmoid}, {"sign", FormulaCode::kSign},
    {"sin", FormulaCode::kSin},         {"softplus", FormulaCode::kSoftplus},
    {"sqrt", FormulaCode::kSqrt},       {"square", FormulaCode::kSquare},
    {"tanh", FormulaCode::kTanh},       {"where", FormulaCode::kWhere}};
constexpr std::string_view kFormulaReductions[] = {"max", "mean", "min", "sum"};
constexpr std::string_view kFormulaPi = "pi";

bool IsFormulaLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool IsFormulaDigit(char c) {
  return c >= '0' && c <= '9';
}
bool IsFormulaSpace(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
// True for all bytes of a character in UTF-8 but its first.
bool ContinuesCharacter(char c) {
  return (static_cast<unsigned char>(c) & 0xC0u) == 0x80u;
}

const FormulaFunction* FindFormulaFunction(std::string_view name) {
  const auto* found = std::ranges::find(kFormulaFunctions, name, &FormulaFunction::name);
  return found == std::end(kFormulaFunctions) ? nullptr : found;
}

bool IsFormulaReduction(std::string_view name) {
  return std::ranges::find(kFormulaReductions, name) != std::end(kFormulaReductions);
}

class FormulaParser {
 public:
  FormulaParser(const std::string& text, const std::vector<std::string>& names)
      : names_(names), is_used_(names.size()) {
    tree_.text = text;
  }

  FormulaTree Parse() {
    SkipSpace();
    if (at_ == text().size()) Fail(at_, "the formula is empty; write one, as in 'x * sigmoid(x)'");
    Comparison();
    if (at_ < text().size()) Fail(at_, StrCat("expected an operator, not ", Shown()));
    for (size_t i = 0; i < names_.size(); ++i) {
      if (!is_used_[i])
        Fail(0, StrCat("the formula does not use '", names_[i], "', which is bottom ", i,
                       "; use it, or remove the bottom"));
    }
    return std::move(tree_);
  }

 private:
  const std::string& text() const { return tree_.text; }
  [[noreturn]] void Fail(size_t at, const std::string& what) const {
    throw InvalidArgument(ShowPlace(text(), at, what));
  }

  void SkipSpace() {
    while (at_ < text().size() && IsFormulaSpace(text()[at_])) ++at_;
  }
  // Skips `token`, and returns true, if it comes next.
  bool Take(std::string_view token) {
    if (text().compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    SkipSpace();
    return true;
  }
  void Expect(std::string_view token, const std::string& why) {
    if (!Take(token)) Fail(at_, StrCat("expected '", token, "' ", why, ", not ", Shown()));
  }
  // The next character, for messages.
  std::string Shown() const {
    if (at_ >= text().size()) return "the end of the formula";
    size_t end = at_ + 1;
    while (end < text().size() && ContinuesCharacter(text()[end])) ++end;
    return StrCat("'", Printable(text().substr(at_, end - at_)), "'");
  }

  int Add(FormulaNode node) {
    tree_.nodes.push_back(std::move(node));
    return static_cast<int>(tree_.nodes.size()) - 1;
  }
  int Apply(FormulaCode code, size_t at, std::vector<int> operands) {
    return Add({.kind = FormulaNode::Kind::kFunction,
                .at = at,
                .operands = std::move(operands),
                .code = code});
  }

  // a < b, and sums.
  int Comparison() {
    const int a = Sum();
    size_t at = at_;
    const std::string_view op = TakeComparison();
    if (op.empty()) return a;
    const int b = Sum();
    const size_t again = at_;
    if (!TakeComparison().empty())
      Fail(again, "comparisons cannot follow each other; write (a < b) * (b < c)");
    if (op == "<") return Apply(FormulaCode::kLess, at, {a, b});
    if (op == ">") return Apply(FormulaCode::kLess, at, {b, a});
    if (op == "<=") return Apply(FormulaCode::kLessEqual, at, {a, b});
    if (op == ">=") return Apply(FormulaCode::kLessEqual, at, {b, a});
    return Apply(FormulaCode::kEqual, at, {a, b});
  }
  std::string_view TakeComparison() {
    for (const std::string_view op : {"<=", ">=", "==", "<", ">"}) {
      if (Take(op)) return op;
    }
    if (at_ < text().size() && text()[at_] == '=') Fail(at_, "'=' compares nothing; write '=='");
    return {};
  }

  int Sum() {
    int a = Product();
    for (;;) {
      const size_t at = at_;
      if (Take("+")) {
        a = Apply(FormulaCode::kAdd, at, {a, Product()});
      } else if (Take("-")) {
        a = Apply(FormulaCode::kSubtract, at, {a, Product()});
      } else {
        return a;
      }
    }
  }

  int Product() {
    int a = Unary();
    for (;;) {
      const size_t at = at_;
      if (text().compare(at_, 2, "**") == 0) Fail(at_, "'**' is not an operator; write '^'");
      if (Take("*")) {
        a = Apply(FormulaCode::kMultiply, at, {a, Unary()});
      } else if (Take("/")) {
        a = Apply(FormulaCode::kDivide, at, {a, Unary()});
      } else {
        return a;
      }
    }
  }

  // -a, and powers: -a^b is -(a^b), and a^-b is a^(-b).
  int Unary() {
    const size_t at = at_;
    if (Take("-")) {
      const Deeper deeper(*this, at);
      return Apply(FormulaCode::kNegative, at, {Unary()});
    }
    const int base = Primary();
    const size_t power = at_;
    if (!Take("^")) return base;
    const Deeper deeper(*this, power);
    return Apply(FormulaCode::kPow, power, {base, Unary()});
  }

  int Primary() {
    const size_t at = at_;
    if (Take("(")) {
      const Deeper deeper(*this, at);
      const int inner = Comparison();
      Expect(")", "to close the parenthesis");
      return inner;
    }
    const char next = at_ < text().size() ? text()[at_] : '\0';
    if (IsFormulaDigit(next) || next == '.') return Number();
    if (!IsFormulaLetter(next)) Fail(at, StrCat("expected a number, a name or '(', not ", Shown()));
    size_t end = at_;
    while (end < text().size() && (IsFormulaLetter(text()[end]) || IsFormulaDigit(text()[end])))
      ++end;
    const std::string name = text().substr(at, end - at);
    at_ = end;
    SkipSpace();
    if (at_ < text().size() && text()[at_] == '(') return Call(name, at);
    return Name(name, at);
  }

  int Number() {
    double number = 0;
    const char *first = text().data() + at_, *last = text().data() + text().size();
    const auto [end, error] = std::from_chars(first, last, number);
    const auto length = static_cast<size_t>(end - first);
    if (error == std::errc::result_out_of_range)
      Fail(at_, StrCat("the number ", Printable(text().substr(at_, length)),
                       " is beyond those of 64 bits (10^308)"));
    if (error != std::errc()) Fail(at_, StrCat("expected a number, not ", Shown()));
    if (end != last && (IsFormulaLetter(*end) || *end == '.'))
      Fail(at_ + length,
           StrCat("expected an operator after the number ", Printable(text().substr(at_, length))));
    const size_t at = at_;
    at_ += length;
    SkipSpace();
    return Add({.at = at, .number = number});
  }

  int Name(const std::string& name, size_t at) {
    const auto found = std::ranges::find(names_, name);
    if (found != names_.end()) {
      const auto bottom = found - names_.begin();
      is_used_[static_cast<size_t>(bottom)] = true;
      return Add(
          {.kind = FormulaNode::Kind::kBottom, .at = at, .bottom = static_cast<int>(bottom)});
    }
    if (name == kFormulaPi) return Add({.at = at, .number = std::numbers::pi});
    if (FindFormulaFunction(name) != nullptr || IsFormulaReduction(name))
      Fail(at, StrCat("'", name, "' is a function; write its arguments in parentheses"));
    if (text().compare(at_, 1, "=") == 0 && text().compare(at_, 2, "==") != 0)
      Fail(at,
           StrCat("unknown argument '", Printable(name), "'; reductions have axis, as in axis=1"));
    Fail(at, StrCat("unknown name '", Printable(name), "'; here the bottoms are ",
                    JoinByComma(names_), ", and expression_param { name } gives other names"));
  }

  int Call(const std::string& name, size_t at) {
    const FormulaFunction* function = FindFormulaFunction(name);
    if (function == nullptr && !IsFormulaReduction(name)) {
      std::vector<std::string> known(std::begin(kFormulaReductions), std::end(kFormulaReductions));
      for (const FormulaFunction& each : kFormulaFunctions) known.emplace_back(each.name);
      const std::string near = NearestName(name, known);
      Fail(at, StrCat("unknown function '", Printable(name), "'",
                      near.empty() ? "; docs/expressions.md lists them"
                                   : StrCat("; did you mean '", near, "'?")));
    }
    const Deeper deeper(*this, at);
    Take("(");
    std::vector<int> operands;
    std::vector<int64_t> axes;
    bool has_axis = false;
    if (!Take(")")) {
      do {
        has_axis = TakeAxisName(name);
        if (has_axis) {
          axes = Axes();
          break;
        }
        operands.push_back(Comparison());
      } while (Take(","));
      Expect(")", StrCat("to close the arguments of ", name));
    }
    const size_t needed =
        function == nullptr ? 1 : static_cast<size_t>(ops::FormulaArity(function->code));
    const bool reduces = IsFormulaReduction(name) && (operands.size() == 1 || has_axis);
    if (reduces ? operands.size() != 1 : operands.size() != needed)
      Fail(at, StrCat(name, " takes ", Takes(name, needed), ", not ", operands.size()));
    return reduces ? Reduce(name, at, operands[0], std::move(axes))
                   : Apply(function->code, at, std::move(operands));
  }
  static std::string Takes(const std::string& name, size_t needed) {
    const std::string all = StrCat(needed, needed == 1 ? " argument" : " arguments");
    if (!IsFormulaReduction(name)) return all;
    return needed == 1 ? "1 argument and axis" : StrCat("1 argument and axis, or ", all);
  }

  int Reduce(const std::string& name, size_t at, int operand, std::vector<int64_t> axes) {
    FormulaNode node{.kind = FormulaNode::Kind::kReduction, .at = at, .operands = {operand}};
    node.axes = std::move(axes);
    node.reduction = name == "sum"    ? AxesReduction::kSum
                     : name == "mean" ? AxesReduction::kMean
                                      : AxesReduction::kMax;
    if (name != "min") return Add(std::move(node));
    node.operands = {Apply(FormulaCode::kNegative, at, {operand})};
    return Apply(FormulaCode::kNegative, at, {Add(std::move(node))});
  }

  // Skips "axis =" and returns true if it comes next.
  bool TakeAxisName(const std::string& function) {
    constexpr std::string_view kAxis = "axis";
    if (text().compare(at_, kAxis.size(), kAxis) != 0) return false;
    const size_t begin = at_;
    size_t end = at_ + kAxis.size();
    while (end < text().size() && IsFormulaSpace(text()[end])) ++end;
    if (end >= text().size() || text()[end] != '=' || text().compare(end, 2, "==") == 0)
      return false;
    if (!IsFormulaReduction(function))
      Fail(begin, StrCat(function, " has no axis; max, mean, min and sum have one"));
    at_ = end;
    return Take("=");
  }
  std::vector<int64_t> Axes() {
    std::vector<int64_t> axes;
    if (!Take("(")) return {Axis()};
    do {
      axes.push_back(Axis());
    } while (Take(","));
    Expect(")", "to close the axes");
    return axes;
  }
  int64_t Axis() {
    const size_t begin = at_;
    int axis = 0;
    const char *first = text().data() + at_, *last = text().data() + text().size();
    const auto [end, error] = std::from_chars(first, last, axis);
    if (error != std::errc())
      Fail(begin, StrCat("expected the number of an axis, as in axis=1, not ", Shown()));
    at_ += static_cast<size_t>(end - first);
    SkipSpace();
    return axis;
  }

  // Counts nested calls of the parser.
  struct Deeper {
    Deeper(FormulaParser& parser, size_t at) : parser(parser) {
      if (++parser.depth_ > kMaxFormulaDepth)
        parser.Fail(at, StrCat("the formula is nested more than ", kMaxFormulaDepth, " deep"));
    }
    ~Deeper() { --parser.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    FormulaParser& parser;
  };

  FormulaTree tree_;
  const std::vector<std::string>& names_;
  std::vector<bool> is_used_;
  size_t at_ = 0;
  int depth_ = 0;
};

void CheckFormulaNames(const std::vector<std::string>& names) {
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    const bool is_word =
        !name.empty() && IsFormulaLetter(name[0]) &&
        std::ranges::all_of(name, [](char c) { return IsFormulaLetter(c) || IsFormulaDigit(c); });
    Require(is_word, "name ", i, " is '", Printable(name),
            "'; it must have letters, digits and _, and not begin with a digit");
    Require(FindFormulaFunction(name) == nullptr && !IsFormulaReduction(name) && name != kFormulaPi,
            "name ", i, " is '", name, "', which formulas use themselves; choose another one");
    for (size_t k = 0; k < i; ++k)
      Require(names[k] != name, "names ", k, " and ", i, " are both '", name,
              "'; bottoms need different names");
  }
}

}  // namespace

std::string ShowPlace(std::string_view text, size_t at, std::string_view what) {
  // The part of the text around the place.
  constexpr size_t kBefore = 48, kAfter = 48;
  size_t begin = at > kBefore ? at - kBefore : 0, end = std::min(text.size(), at + kAfter);
  while (begin > 0 && ContinuesCharacter(text[begin])) --begin;
  while (end < text.size() && ContinuesCharacter(text[end])) ++end;
  std::string line = begin > 0 ? "..." : "", below(line.size(), ' ');
  for (size_t i = begin; i < end; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    line += byte < 0x20 || byte == 0x7F ? ' ' : text[i];
    if (i < at && !ContinuesCharacter(text[i])) below += ' ';
  }
  if (end < text.size()) line += "...";
  return StrCat(what, "\n  ", HasControlCharacters(line) ? Printable(line) : line, "\n  ", below,
                "^");
}

FormulaTree ParseFormula(const std::string& text, const std::vector<std::string>& names) {
  CheckFormulaNames(names);
  Require(text.size() <= kMaxFormulaText, "the formula has ", text.size(), " characters; at most ",
          kMaxFormulaText, " are possible; divide it over several layers");
  return FormulaParser(text, names).Parse();
}

}  // namespace caffe
