#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/item_losses.hpp"
#include "caffe/layers/loss_layer.hpp"

namespace caffe {
namespace {

// Smooth L1 distance per item. Differences are multiplied by bottom 2 (inside weights) and terms by
// bottom 3 (outside weights), if present. Top 1, if present, is each position's loss before the
// division, summed over axis 1, with which R-FCN selects hard examples; it has no gradient.
class SmoothL1LossLayer final : public LossLayer {
 public:
  explicit SmoothL1LossLayer(const LayerParameter& param)
      : LossLayer(param), sigma_(param.smooth_l1_loss_param().sigma()) {
    Require(sigma_ > 0, "sigma is ", sigma_, "; it must be above 0");
  }

  LayerTraits traits() const override {
    return {.min_bottoms = 2, .max_bottoms = 4, .min_tops = 1, .max_tops = 2, .is_loss = true};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    for (const Shape& bottom : bottoms) RequireEqualCounts(bottoms[0], bottom);
    std::vector<Shape> tops = LossLayer::InferTopShapes(bottoms);
    if (param().top_size() > 1) {
      const Shape& x = bottoms[0];
      Require(x.num_axes() >= 2, "bottom 0 has shape ", x,
              "; the loss of each position (top 1) is a sum over axis 1");
      tops.push_back(x.With(1, 1));
    }
    return tops;
  }

  void EmitForward(GraphBuilder& graph) const override {
    std::vector<Value*> inputs = {graph.bottom(0), graph.bottom(1)};
    AddWeights(graph, &inputs);
    const ops::SmoothL1Loss op{sigma_, Divisor(graph.shape(graph.bottom(0)))};
    graph.Emit(op, inputs, {graph.top(0)});
    if (graph.num_tops() > 1) EmitLossOfEachPosition(graph, op, inputs, graph.top(1));
  }

  void EmitBackward(GraphBuilder& graph) const override {
    std::vector<Value*> inputs = {graph.bottom(0), graph.bottom(1), graph.top_diff(0)};
    AddWeights(graph, &inputs);
    for (const int i : {0, 1}) {
      graph.Emit(ops::SmoothL1LossGrad{.sign = i == 0 ? 1 : -1,
                                       .sigma = sigma_,
                                       .applies_weight = IsFasterRCNNs(graph),
                                       .divisor = Divisor(graph.shape(graph.bottom(0)))},
                 inputs, {graph.bottom_diff(i)});
    }
  }

  bool AllowForceBackward(int bottom) const override { return bottom < 2; }

 private:
  static void AddWeights(GraphBuilder& graph, std::vector<Value*>* inputs) {
    for (int i = 2; i < graph.num_bottoms(); ++i) inputs->push_back(graph.bottom(i));
  }
  // Faster R-CNN's gradient is that of the loss for any weights; Fast R-CNN's and NVCaffe's, which
  // have no options and no outside weights, ignore the inside weights.
  bool IsFasterRCNNs(GraphBuilder& graph) const {
    return param().has_smooth_l1_loss_param() || graph.num_bottoms() > 3;
  }

  // R-FCN divides according to loss_param. The others always divide by the number of items;
  // PRE_FIXED exists only in R-FCN.
  std::optional<double> Divisor(const Shape& x) const {
    const ops::LabelRule rule = ParseLabelRule(param().loss_param(), 1, ops::Normalization::kValid);
    if (param().type() != "SmoothL1LossOHEM" && rule.normalization != ops::Normalization::kPreFixed)
      return std::nullopt;
    const int64_t items = x.LegacyExtent(0), positions = x.num_axes() > 2 ? x.count(2) : 1;
    return rule.Divisor(items, positions, items * positions);
  }

  const float sigma_;
};

using SmoothL1LossOHEMLayer = SmoothL1LossLayer;  // R-FCN's name

REGISTER_LAYER_CLASS(SmoothL1Loss, "loss_param");
REGISTER_LAYER_CLASS(SmoothL1LossOHEM, "smooth_l1_loss_param", "loss_param");

}  // namespace
}  // namespace caffe
