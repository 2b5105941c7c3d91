#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/loss_layer.hpp"
#include "caffe/ops/pair_losses.hpp"

namespace caffe {
namespace {

// Sum of absolute differences per item; both bottoms get gradients.
class L1LossLayer final : public LossLayer {
 public:
  using LossLayer::LossLayer;

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    RequireEqualCounts(bottoms[0], bottoms[1]);
    return LossLayer::InferTopShapes(bottoms);
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::L1Loss{}, {graph.bottom(0), graph.bottom(1)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    for (const int i : {0, 1}) {
      graph.Emit(ops::L1LossGrad{.sign = i == 0 ? 1 : -1},
                 {graph.bottom(0), graph.bottom(1), graph.top_diff(0)}, {graph.bottom_diff(i)});
    }
  }

  bool AllowForceBackward(int) const override { return true; }
};

REGISTER_LAYER_CLASS(L1Loss);

}  // namespace
}  // namespace caffe
