#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/loss_layer.hpp"
#include "caffe/ops/pair_losses.hpp"

namespace caffe {
namespace {

// Smooth L1 distance per item, differences multiplied by bottom 2 where it is given.
class SmoothL1LossLayer final : public LossLayer {
 public:
  using LossLayer::LossLayer;

  LayerTraits traits() const override {
    return {.min_bottoms = 2, .max_bottoms = 3, .num_tops = 1, .is_loss = true};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    for (const Shape& bottom : bottoms) RequireEqualCounts(bottoms[0], bottom);
    return LossLayer::InferTopShapes(bottoms);
  }

  void EmitForward(GraphBuilder& graph) const override {
    std::vector<Value*> inputs = {graph.bottom(0), graph.bottom(1)};
    if (graph.num_bottoms() > 2) inputs.push_back(graph.bottom(2));
    graph.Emit(ops::SmoothL1Loss{}, inputs, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    std::vector<Value*> inputs = {graph.bottom(0), graph.bottom(1), graph.top_diff(0)};
    if (graph.num_bottoms() > 2) inputs.push_back(graph.bottom(2));
    for (const int i : {0, 1}) {
      graph.Emit(ops::SmoothL1LossGrad{.sign = i == 0 ? 1 : -1}, inputs, {graph.bottom_diff(i)});
    }
  }

  bool AllowForceBackward(int bottom) const override { return bottom < 2; }
};

REGISTER_LAYER_CLASS(SmoothL1Loss);

}  // namespace
}  // namespace caffe
