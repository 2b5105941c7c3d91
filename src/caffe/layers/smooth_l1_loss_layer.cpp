#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/loss_layer.hpp"
#include "caffe/ops/pair_losses.hpp"

namespace caffe {
namespace {

// Smooth L1 distance per item. Differences are multiplied by bottom 2 (inside weights), terms by
// bottom 3 (outside weights) where they are given.
class SmoothL1LossLayer final : public LossLayer {
 public:
  explicit SmoothL1LossLayer(const LayerParameter& param)
      : LossLayer(param), sigma_(param.smooth_l1_loss_param().sigma()) {
    Require(sigma_ > 0, "sigma is ", sigma_, "; it must be above 0");
  }

  LayerTraits traits() const override {
    return {.min_bottoms = 2, .max_bottoms = 4, .num_tops = 1, .is_loss = true};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    for (const Shape& bottom : bottoms) RequireEqualCounts(bottoms[0], bottom);
    return LossLayer::InferTopShapes(bottoms);
  }

  void EmitForward(GraphBuilder& graph) const override {
    std::vector<Value*> inputs = {graph.bottom(0), graph.bottom(1)};
    AddWeights(graph, &inputs);
    graph.Emit(ops::SmoothL1Loss{sigma_}, inputs, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    std::vector<Value*> inputs = {graph.bottom(0), graph.bottom(1), graph.top_diff(0)};
    AddWeights(graph, &inputs);
    for (const int i : {0, 1}) {
      graph.Emit(
          ops::SmoothL1LossGrad{
              .sign = i == 0 ? 1 : -1, .sigma = sigma_, .applies_weight = IsFasterRCNNs(graph)},
          inputs, {graph.bottom_diff(i)});
    }
  }

  bool AllowForceBackward(int bottom) const override { return bottom < 2; }

 private:
  static void AddWeights(GraphBuilder& graph, std::vector<Value*>* inputs) {
    for (int i = 2; i < graph.num_bottoms(); ++i) inputs->push_back(graph.bottom(i));
  }
  // Faster R-CNN's gradient is the loss's for any weights; Fast R-CNN's and NVCaffe's, which have
  // no options and no outside weights, leave the inside ones out.
  bool IsFasterRCNNs(GraphBuilder& graph) const {
    return param().has_smooth_l1_loss_param() || graph.num_bottoms() > 3;
  }

  const float sigma_;
};

REGISTER_LAYER_CLASS(SmoothL1Loss);

}  // namespace
}  // namespace caffe
