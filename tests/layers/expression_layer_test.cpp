#include <gtest/gtest.h>

#include "caffe/blob.hpp"
#include "caffe/error.hpp"
#include "caffe/plan_report.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using testing::NetOf;

// A net with inputs of 2x3, 3x1, and so on, and a layer 'act' that computes `expr` of them.
std::string NetText(const std::string& expr, const std::vector<std::string>& shapes,
                    const std::string& options = "") {
  std::string text, bottoms;
  for (size_t i = 0; i < shapes.size(); ++i) {
    std::string dims;
    for (const char c : shapes[i]) dims += c == 'x' ? std::string(" ") : StrCat("dim: ", c, " ");
    text += StrCat("layer { name: 'in", i, "' type: 'Input' top: 'in", i,
                   "' input_param { shape { ", dims, "} } } ");
    bottoms += StrCat("bottom: 'in", i, "' ");
  }
  return StrCat(text, "layer { name: 'act' type: 'Expression' ", bottoms,
                "top: 'y' expression_param { expr: '", expr, "' ", options, " } }");
}

std::string ErrorOf(const std::string& expr, const std::vector<std::string>& shapes = {"2x3"},
                    const std::string& options = "") {
  return ErrorText<InvalidArgument>([&] { NetOf(NetText(expr, shapes, options)); });
}

struct WrongFormula {
  std::string expr, message;
  std::string line, caret;  // below the message
};

TEST(ExpressionLayerTest, ErrorsShowThePlace) {
  const std::string line = "x * sigmod(1.702 * x)";
  const WrongFormula cases[] = {
      {line, "unknown function 'sigmod'; did you mean 'sigmoid'?", line, "    ^"},
      {"quux(x)", "unknown function 'quux'; docs/expressions.md lists them", "quux(x)", "^"},
      {"x * w",
       "unknown name 'w'; here the bottoms are x, and expression_param { name } gives other names",
       "x * w", "    ^"},
      {"sum(x, dim=1)", "unknown argument 'dim'; reductions have axis, as in axis=1",
       "sum(x, dim=1)", "       ^"},
      {"x * sigmoid", "'sigmoid' is a function; write its arguments in parentheses", "x * sigmoid",
       "    ^"},
      {"", "the formula is empty; write one, as in 'x * sigmoid(x)'", "", "^"},
      {"   ", "the formula is empty; write one, as in 'x * sigmoid(x)'", "   ", "   ^"},
      {"(x", "expected ')' to close the parenthesis, not the end of the formula", "(x", "  ^"},
      {"exp(x", "expected ')' to close the arguments of exp, not the end of the formula", "exp(x",
       "     ^"},
      {"x)", "expected an operator, not ')'", "x)", " ^"},
      {"x +", "expected a number, a name or '(', not the end of the formula", "x +", "   ^"},
      {"x + * x", "expected a number, a name or '(', not '*'", "x + * x", "    ^"},
      {"x x", "expected an operator, not 'x'", "x x", "  ^"},
      {"x $ 2", "expected an operator, not '$'", "x $ 2", "  ^"},
      {"\xC3\xA9 * x", "expected a number, a name or '(', not '\xC3\xA9'", "\xC3\xA9 * x", "^"},
      {"x * \xC3\xA9", "expected a number, a name or '(', not '\xC3\xA9'", "x * \xC3\xA9", "    ^"},
      {"x ** 2", "'**' is not an operator; write '^'", "x ** 2", "  ^"},
      {"x = 2", "'=' compares nothing; write '=='", "x = 2", "  ^"},
      {"1 < x < 2", "comparisons cannot follow each other; write (a < b) * (b < c)", "1 < x < 2",
       "      ^"},
      {"x + 1e999", "the number 1e999 is beyond those of 64 bits (10^308)", "x + 1e999", "    ^"},
      {"x + .", "expected a number, not '.'", "x + .", "    ^"},
      {"2x", "expected an operator after the number 2", "2x", " ^"},
      {"1.5.2 * x", "expected an operator after the number 1.5", "1.5.2 * x", "   ^"},
      {"exp(x, x)", "exp takes 1 argument, not 2", "exp(x, x)", "^"},
      {"1 + clip(x, 1)", "clip takes 3 arguments, not 2", "1 + clip(x, 1)", "    ^"},
      {"exp()", "exp takes 1 argument, not 0", "exp()", "^"},
      {"max(x, x, x)", "max takes 1 argument and axis, or 2 arguments, not 3", "max(x, x, x)", "^"},
      {"sum(x, x)", "sum takes 1 argument and axis, not 2", "sum(x, x)", "^"},
      {"max(x, x, axis=1)", "max takes 1 argument and axis, or 2 arguments, not 2",
       "max(x, x, axis=1)", "^"},
      {"exp(x, axis=1)", "exp has no axis; max, mean, min and sum have one", "exp(x, axis=1)",
       "       ^"},
      {"sum(x, axis=y)", "expected the number of an axis, as in axis=1, not 'y'", "sum(x, axis=y)",
       "            ^"},
      {"x + sum(x, axis=2)", "axis 2 is out of range for shape 2x3, which has 2 axes",
       "x + sum(x, axis=2)", "    ^"},
      {"x + sum(x, axis=(1, -1))", "axis -1 is named twice", "x + sum(x, axis=(1, -1))", "    ^"},
  };
  for (const WrongFormula& wrong : cases) {
    const std::string error = ErrorOf(wrong.expr);
    EXPECT_EQ(error.find("layer 'act' (Expression): expr: "), error.find("layer 'act'")) << error;
    EXPECT_NE(error.find(StrCat(wrong.message, "\n  ", wrong.line, "\n  ", wrong.caret)),
              std::string::npos)
        << wrong.expr << "\n"
        << error;
  }
}

TEST(ExpressionLayerTest, ShapesThatDoNotBroadcastAreBothNamed) {
  const std::string error = ErrorOf("tanh(x) * y + 1", {"2x3", "4x3"});
  EXPECT_NE(error.find("shapes 2x3 and 4x3 do not broadcast: axis -2 has 2 and 4 elements; they "
                       "must be equal, or one of them 1\n  tanh(x) * y + 1\n          ^"),
            std::string::npos)
      << error;
}

TEST(ExpressionLayerTest, EachBottomMustBeUsed) {
  const std::string error = ErrorOf("x + z", {"2x3", "2x3", "2x3"});
  EXPECT_NE(error.find("the formula does not use 'y', which is bottom 1; use it, or remove the "
                       "bottom"),
            std::string::npos)
      << error;
}

TEST(ExpressionLayerTest, NamesMustBeUsable) {
  const auto error = [](const std::string& names) { return ErrorOf("a + b", {"2x3", "3"}, names); };
  EXPECT_NE(error("name: 'a'").find("there are 1 names for 2 bottoms"), std::string::npos);
  EXPECT_NE(error("name: 'a' name: 'a'").find("names 0 and 1 are both 'a'"), std::string::npos);
  EXPECT_NE(error("name: 'a' name: 'exp'").find("name 1 is 'exp', which formulas use themselves"),
            std::string::npos);
  EXPECT_NE(error("name: 'a' name: 'pi'").find("name 1 is 'pi'"), std::string::npos);
  EXPECT_NE(error("name: '' name: 'b'").find("name 0 is ''; it must have letters, digits and _"),
            std::string::npos);
  EXPECT_NE(error("name: 'a' name: '2b'").find("and not begin with a digit"), std::string::npos);
}

TEST(ExpressionLayerTest, HostileFormulasAreLimited) {
  EXPECT_NE(ErrorOf(std::string(5000, '-') + "x")
                .find("the formula has 5001 characters; at most "
                      "4000 are possible"),
            std::string::npos);
  for (const std::string opening : {"(", "-", "exp(", "2^"}) {
    std::string text;
    for (int i = 0; i < 900; ++i) text += opening;
    EXPECT_NE(ErrorOf(text + "x").find("the formula is nested more than 64 deep"),
              std::string::npos)
        << opening;
  }
  std::string sum = "x", functions = "x";
  for (int i = 0; i < 900; ++i) sum += "+x";
  for (int i = 0; i < 100; ++i) functions = StrCat("tanh(x*", i, ")+", functions);
  EXPECT_NE(ErrorOf(sum).find("needs 900 functions at once; at most 256 are possible; divide it "
                              "over several layers"),
            std::string::npos)
      << ErrorOf(sum);
  EXPECT_NE(ErrorOf(functions).find("numbers at once; at most 64 are possible"), std::string::npos)
      << ErrorOf(functions);
}

TEST(ExpressionLayerTest, LongFormulasShowThePartAroundThePlace) {
  const std::string error = ErrorOf("x" + std::string(100, ' ') + "$" + std::string(100, ' '));
  const std::string before(48, ' '), after(47, ' ');
  EXPECT_NE(error.find("\n  ..." + before + "$" + after + "...\n  " + "   " + before + "^"),
            std::string::npos)
      << error;
}

TEST(ExpressionLayerTest, BroadcastingAlternatesAlongEightAxesAtMost) {
  const std::vector<std::string> shapes = {"2x1x2x1x2x1x2x1x2x1", "1x2x1x2x1x2x1x2x1x2"};
  EXPECT_NE(ErrorOf("x + y", shapes)
                .find("are broadcast along more than 8 separate axes; reshape "
                      "them to fewer"),
            std::string::npos);
}

// One pass over memory: the plan has one step for a formula, and one for its gradient.
TEST(ExpressionLayerTest, AFormulaIsOneStep) {
  const auto net =
      NetOf("force_backward: true " + NetText("x * sigmoid(1.702 * x) + y^2", {"2x3", "2x3"}));
  EXPECT_EQ(PlanSteps(*net).size(), 2u);
}

// The gradient of y is the negative of a sum, not the sum of negatives.
TEST(ExpressionLayerTest, SumsAreNegatedWhereThereAreFewerElements) {
  const auto net = NetOf("force_backward: true " + NetText("x - y", {"2x3", "3"}));
  std::string backward;
  for (const PlanStep& step : PlanSteps(*net)) {
    if (step.is_backward) backward += step.op + ": " + step.operands + "\n";
  }
  EXPECT_EQ(backward,
            "View: 2x3 float -> 2x3 float\n"
            "ReduceAxes[sum]: 2x3 float -> 3 float\n"
            "Formula[steps 1]: 3 float -> 3 float\n");
}

}  // namespace
}  // namespace caffe
