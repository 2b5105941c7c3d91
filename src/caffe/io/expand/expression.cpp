#include "caffe/io/expand/expression.hpp"

#include <algorithm>
#include <limits>

namespace caffe::expand {
namespace {

using google::protobuf::io::Tokenizer;

class Arithmetic {
 public:
  Arithmetic(const Tokens& tokens, size_t* at, const Lookup& lookup)
      : tokens_(tokens), at_(*at), lookup_(lookup) {}

  // A '(' comes next.
  int64_t Parenthesis() {
    const Token open = Now();
    constexpr int kMostParentheses = 100;
    RequireAt(open.place, ++depth_ <= kMostParentheses, "parentheses are nested more than ",
              kMostParentheses, " deep");
    ++at_;
    const int64_t result = Sum();
    RequireAt(Now().place, Now().Is(")"), "an operator or ')' is expected, got ", Shown());
    ++at_;
    --depth_;
    return result;
  }

 private:
  const Token& Now() const { return tokens_[std::min(at_, tokens_.size() - 1)]; }
  std::string Shown() const { return Now().is_end() ? "the end" : Now().text; }

  int64_t Sum() {
    int64_t left = Product();
    while (Now().Is("+") || Now().Is("-")) {
      const Token sign = Now();
      ++at_;
      const int64_t right = Product();
      int64_t result = 0;
      const bool overflows = sign.Is("+") ? __builtin_add_overflow(left, right, &result)
                                          : __builtin_sub_overflow(left, right, &result);
      RequireAt(sign.place, !overflows, left, " ", sign.text, " ", right,
                " does not fit into 64 bits");
      left = result;
    }
    return left;
  }

  int64_t Product() {
    int64_t left = Factor();
    while (Now().Is("*") || Now().Is("/")) {
      const Token sign = Now();
      ++at_;
      const int64_t right = Factor();
      left = sign.Is("*") ? Times(sign, left, right) : Quotient(sign, left, right);
    }
    return left;
  }

  static int64_t Times(const Token& sign, int64_t left, int64_t right) {
    int64_t result = 0;
    const bool overflows = __builtin_mul_overflow(left, right, &result);
    RequireAt(sign.place, !overflows, left, " * ", right, " does not fit into 64 bits");
    return result;
  }

  static int64_t Quotient(const Token& sign, int64_t left, int64_t right) {
    RequireAt(sign.place, right != 0, left, " / 0 has no result");
    RequireAt(sign.place, left != std::numeric_limits<int64_t>::min() || right != -1, left,
              " / -1 does not fit into 64 bits");
    RequireAt(sign.place, left % right == 0, left, " / ", right, " leaves a remainder of ",
              left % right, "; give numbers that divide exactly");
    return left / right;
  }

  int64_t Factor() {
    if (Now().Is("(")) return Parenthesis();
    if (Now().Is("-")) {
      const Token sign = Now();
      ++at_;
      constexpr int kMostSigns = 100;
      RequireAt(sign.place, ++depth_ <= kMostSigns, "more than ", kMostSigns, " signs");
      const int64_t value = Times(sign, -1, Factor());
      --depth_;
      return value;
    }
    if (Now().Is("$")) ++at_;
    const Token operand = Now();
    const bool is_name = operand.type == Tokenizer::TYPE_IDENTIFIER;
    RequireAt(operand.place, is_name || operand.type == Tokenizer::TYPE_INTEGER,
              "a whole number or the name of an argument is expected, got ", Shown());
    ++at_;
    return is_name ? IntegerOf(lookup_(operand), operand) : IntegerOf({operand}, operand);
  }

  const Tokens& tokens_;
  size_t& at_;
  const Lookup& lookup_;
  int depth_ = 0;
};

}  // namespace

int64_t Evaluate(const Tokens& tokens, size_t* at, const Lookup& lookup) {
  return Arithmetic(tokens, at, lookup).Parenthesis();
}

int64_t IntegerOf(const Tokens& tokens, const Token& name) {
  const bool is_negative = !tokens.empty() && tokens.front().Is("-");
  const size_t count = is_negative ? 2 : 1;
  uint64_t magnitude = 0;
  const bool is_integer =
      tokens.size() == count && tokens.back().type == Tokenizer::TYPE_INTEGER &&
      Tokenizer::ParseInteger(tokens.back().text, std::numeric_limits<int64_t>::max(), &magnitude);
  std::string shown;
  for (const Token& token : tokens) shown += token.text;
  RequireAt(name.place, is_integer, "'", name.text, "' is ", shown.substr(0, 80),
            ", which is not a whole number of 64 bits");
  return is_negative ? -static_cast<int64_t>(magnitude) : static_cast<int64_t>(magnitude);
}

Tokens NumberTokens(int64_t number, const SourcePlace& place) {
  std::string digits = StrCat(number);
  Tokens tokens;
  if (number < 0) {
    tokens.push_back({Tokenizer::TYPE_SYMBOL, "-", place});
    digits.erase(0, 1);
  }
  tokens.push_back({Tokenizer::TYPE_INTEGER, digits, place});
  return tokens;
}

}  // namespace caffe::expand
