#include <cmath>

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/loss_layer.hpp"
#include "caffe/ops/pair_losses.hpp"

namespace caffe {
namespace {

// Cross-entropy of sigmoid(x) with targets in [0, 1], one for each score; loss_param {
// positive_weight } is the factor of the targets' share of 1.
class SigmoidCrossEntropyLossLayer final : public LossLayer {
 public:
  explicit SigmoidCrossEntropyLossLayer(const LayerParameter& param) : LossLayer(param) {
    WarnOfUnusedLossFields(param,
                           {"ignore_label", "normalize", "normalization", "positive_weight"});
    const float weight = param.loss_param().positive_weight();
    Require(weight > 0 && std::isfinite(weight), "positive_weight is ", weight,
            "; it must be above 0");
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    RequireEqualCounts(bottoms[0], bottoms[1]);
    return LossLayer::InferTopShapes(bottoms);
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::SigmoidCrossEntropyLoss{Rule(), CrossEntropy()},
               {graph.bottom(0), graph.bottom(1)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    graph.Emit(ops::SigmoidCrossEntropyLossGrad{Rule(), CrossEntropy()},
               {graph.bottom(0), graph.bottom(1), graph.top_diff(0)}, {graph.bottom_diff(0)});
  }

 private:
  ops::LabelRule Rule() const {
    return ParseLabelRule(param().loss_param(), 1, ops::Normalization::kBatchSize);
  }
  ops::SigmoidCrossEntropy CrossEntropy() const {
    return {static_cast<double>(param().loss_param().positive_weight())};
  }
};

REGISTER_LAYER_CLASS(SigmoidCrossEntropyLoss, "loss_param");

}  // namespace
}  // namespace caffe
