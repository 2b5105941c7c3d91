#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/loss_layer.hpp"
#include "caffe/ops/pair_losses.hpp"

namespace caffe {
namespace {

// Cross-entropy of sigmoid(x) with targets in [0, 1], one for each score.
class SigmoidCrossEntropyLossLayer final : public LossLayer {
 public:
  explicit SigmoidCrossEntropyLossLayer(const LayerParameter& param) : LossLayer(param) {
    WarnOfUnusedLossFields(param, {"ignore_label", "normalize", "normalization"});
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    RequireEqualCounts(bottoms[0], bottoms[1]);
    return LossLayer::InferTopShapes(bottoms);
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::SigmoidCrossEntropyLoss{Rule()}, {graph.bottom(0), graph.bottom(1)},
               {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    graph.Emit(ops::SigmoidCrossEntropyLossGrad{Rule()},
               {graph.bottom(0), graph.bottom(1), graph.top_diff(0)}, {graph.bottom_diff(0)});
  }

 private:
  ops::LabelRule Rule() const {
    return ParseLabelRule(param().loss_param(), 1, ops::Normalization::kBatchSize);
  }
};

REGISTER_LAYER_CLASS(SigmoidCrossEntropyLoss, "loss_param");

}  // namespace
}  // namespace caffe
