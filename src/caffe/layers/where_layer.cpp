#include "caffe/layer_factory.hpp"
#include "caffe/layers/broadcast.hpp"
#include "caffe/layers/expression/formula_layer.hpp"

namespace caffe {
namespace {

// Bottom 1 where bottom 0 is not 0, else bottom 2, with NumPy's broadcasting.
class WhereLayer final : public FormulaLayer {
 public:
  explicit WhereLayer(const LayerParameter& param)
      : FormulaLayer(param, ParseFormula("where(c, a, b)", {"c", "a", "b"})) {}

  LayerTraits traits() const override { return {.num_bottoms = 3, .num_tops = 1}; }
  bool AllowForceBackward(int bottom) const override { return bottom > 0; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    return {BroadcastShape(bottoms)};
  }
};

REGISTER_LAYER_CLASS(Where);

}  // namespace
}  // namespace caffe
