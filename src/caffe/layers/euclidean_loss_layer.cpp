#include "caffe/layer_factory.hpp"
#include "caffe/layers/loss_layer.hpp"

namespace caffe {
namespace {

// loss = sum (a - b)^2 / (2 N).  Both bottoms may get gradients.
class EuclideanLossLayer final : public LossLayer {
 public:
  using LossLayer::LossLayer;

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    RequireEqualCounts(bottoms[0], bottoms[1]);
    return LossLayer::InferTopShapes(bottoms);
  }

  bool AllowForceBackward(int) const override { return true; }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::EuclideanLoss{}, {graph.bottom(0), graph.bottom(1)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    for (int i = 0; i < 2; ++i) {
      graph.Emit(ops::EuclideanLossGrad{.sign = i == 0 ? 1 : -1},
                 {graph.bottom(0), graph.bottom(1), graph.top_diff(0)}, {graph.bottom_diff(i)});
    }
  }
};

REGISTER_LAYER_CLASS(EuclideanLoss);

}  // namespace
}  // namespace caffe
