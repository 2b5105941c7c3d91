#include <algorithm>

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/arrange.hpp"

namespace caffe {
namespace {

// Reorders axes: axis i of the top is axis order[i] of the bottom; the remaining axes follow in
// order.
class PermuteLayer final : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    return {ops::Permute{Order(bottoms[0])}.OutputShape(bottoms[0])};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::Permute{Order(graph.shape(graph.bottom(0)))}, {graph.bottom(0)},
               {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    const ops::Permute permute{Order(graph.shape(graph.bottom(0)))};
    graph.Emit(permute.Inverse(), {graph.top_diff(0)}, {graph.bottom_diff(0)});
  }

 private:
  std::vector<int> Order(const Shape& bottom) const {
    std::vector<int> order;
    const auto is_named = [&](int axis) {
      return std::find(order.begin(), order.end(), axis) != order.end();
    };
    for (const uint32_t named : param().permute_param().order()) {
      const int axis = static_cast<int>(named);
      Require(axis < bottom.num_axes(), "order names axis ", axis, " of shape ", bottom,
              ", which has axes 0..", bottom.num_axes() - 1);
      Require(!is_named(axis), "order names axis ", axis, " twice");
      order.push_back(axis);
    }
    for (int axis = 0; axis < bottom.num_axes(); ++axis) {
      if (!is_named(axis)) order.push_back(axis);
    }
    return order;
  }
};

REGISTER_LAYER_CLASS(Permute);

}  // namespace
}  // namespace caffe
