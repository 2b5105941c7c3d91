#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/loss_layer.hpp"
#include "caffe/ops/class_losses.hpp"

namespace caffe {
namespace {

// Cross-entropy of probabilities (not scores) with integer labels.
class MultinomialLogisticLossLayer final : public LossLayer {
 public:
  using LossLayer::LossLayer;

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    RequireLabelPerItem(bottoms[0], bottoms[1]);
    return LossLayer::InferTopShapes(bottoms);
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::MultinomialLogisticLoss{}, {graph.bottom(0), graph.bottom(1)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    graph.Emit(ops::MultinomialLogisticLossGrad{},
               {graph.bottom(0), graph.bottom(1), graph.top_diff(0)}, {graph.bottom_diff(0)});
  }
};

REGISTER_LAYER_CLASS(MultinomialLogisticLoss);

}  // namespace
}  // namespace caffe
