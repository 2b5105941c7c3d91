#include "caffe/layer_factory.hpp"
#include "caffe/layers/expression/formula_layer.hpp"

namespace caffe {
namespace {

// Logarithms of the probabilities along softmax_param's axis. Scores less the largest one neither
// overflow nor become 0 before the logarithm.
FormulaTree LogSoftmaxOf(int axis) {
  const std::string along = StrCat("axis=", axis), rest = StrCat("(x - max(x, ", along, "))");
  return ParseFormula(StrCat(rest, " - log(sum(exp", rest, ", ", along, "))"), {"x"});
}

class LogSoftmaxLayer final : public FormulaLayer {
 public:
  explicit LogSoftmaxLayer(const LayerParameter& param)
      : FormulaLayer(param, LogSoftmaxOf(param.softmax_param().axis())) {}

  LayerTraits traits() const override {
    return {.num_bottoms = 1, .num_tops = 1, .can_run_in_place = true};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    bottoms[0].CanonicalAxis(param().softmax_param().axis());
    return {bottoms[0]};
  }
};

REGISTER_LAYER_CLASS(LogSoftmax, "softmax_param");

}  // namespace
}  // namespace caffe
