// Arithmetic with several blobs.
#include "tests/fuzz/dag/layer_texts.hpp"
#include "tests/fuzz/dag/net_writer.hpp"

namespace caffe::fuzz {
namespace {

void AddEltwise(NetWriter& net) {
  const KnownBlob first = net.ChooseAny();
  const auto second = net.ChooseLike(first);
  if (!second) return;
  std::vector<KnownBlob> bottoms = {first, *second};
  if (net.random().Chance(0.2))
    bottoms.push_back(net.random().Chance(0.5) ? first : *net.ChooseLike(first));
  const char* operation = net.random().Pick({"SUM", "SUM", "SUM", "PROD", "MAX"});
  std::string text = StrCat("type: 'Eltwise' eltwise_param { operation: ", operation);
  if (std::string(operation) == "SUM" && net.random().Chance(0.4)) {
    for (size_t i = 0; i < bottoms.size(); ++i)
      text += StrCat(" coeff: ", net.random().Pick({1.0, -1.0, 0.5, 2.0, -0.25}));
  }
  if (std::string(operation) == "PROD" && net.random().Chance(0.3)) {
    text += " stable_prod_grad: false";
    net.ExpectNan();  // may divide by 0
  }
  net.Add(text + " }", bottoms, {net.random().Chance(0.15) ? net.TopOver(first) : net.NewTop()});
}

// An operation of a blob and one like it, or one that is repeated along some of its axes.
void AddBinary(NetWriter& net) {
  const KnownBlob first = net.ChooseAny();
  auto second = net.random().Chance(0.4) ? net.ChooseLike(first) : std::nullopt;
  if (!second) {
    if (first.batch != 0 || first.shape.num_axes() == 0 || first.shape[0] != net.items()) return;
    Shape repeated = first.shape;
    for (int axis = 1; axis < repeated.num_axes(); ++axis) {
      if (net.random().Chance(0.5)) repeated = repeated.With(axis, 1);
    }
    second = net.NewInput("x", repeated);
  }
  std::vector<KnownBlob> both = {first, *second};
  if (net.random().Chance(0.5)) std::swap(both[0], both[1]);
  net.Add(StrCat("type: 'Binary' binary_param { operation: ",
                 net.random().Pick({"ADD", "SUBTRACT", "MULTIPLY", "MAXIMUM", "MINIMUM"}), " }"),
          both, {net.NewTop()});
}

// Formulas without jumps, at which rounding would decide.
void AddExpression(NetWriter& net) {
  const KnownBlob first = net.ChooseAny();
  const auto second = net.ChooseLike(first);
  std::vector<KnownBlob> bottoms = {first};
  if (second && net.random().Chance(0.4)) bottoms.push_back(*second);
  const std::string expr =
      bottoms.size() == 2
          ? net.random().Pick<std::string>({"x * sigmoid(y) + x", "tanh(x) / 2 - y * mean(x)"})
          : net.random().Pick<std::string>({"x * sigmoid(1.702 * x)", "x - mean(x, axis=-1)",
                                            "tanh(x) + 0.1 * sum(x * x, axis=0)"});
  net.Add(StrCat("type: 'Expression' expression_param { expr: '", expr, "' }"), bottoms,
          {net.random().Chance(0.15) ? net.TopOver(first) : net.NewTop()});
}

// A formula of a blob and one that is repeated along some of its axes.
void AddBroadcastExpression(NetWriter& net) {
  const KnownBlob first = net.ChooseAny();
  if (first.batch != 0 || first.shape.num_axes() == 0 || first.shape[0] != net.items()) return;
  Shape repeated = first.shape;
  for (int axis = 1; axis < repeated.num_axes(); ++axis) {
    if (net.random().Chance(0.5)) repeated = repeated.With(axis, 1);
  }
  const std::string expr =
      net.random().Pick<std::string>({"x * sigmoid(y) + y", "(x - mean(x, axis=-1)) * y",
                                      "exp(0.1 * x) + tanh(y) * x", "softplus(x) - 0.5 * y"});
  net.Add(StrCat("type: 'Expression' expression_param { expr: '", expr, "' }"),
          {first, net.NewInput("x", repeated)}, {net.NewTop()});
}

const NetKind broadcast_expression("Expression with broadcasting", 4, AddBroadcastExpression);
const NetKind eltwise("Eltwise", 10, AddEltwise);
const NetKind binary("Binary", 2, AddBinary);
const NetKind expression("Expression", 5, AddExpression);

}  // namespace
}  // namespace caffe::fuzz
