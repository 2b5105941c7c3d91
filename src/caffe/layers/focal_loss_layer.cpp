#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/loss_layer.hpp"

namespace caffe {
namespace {

// Cross-entropy of softmax scores in which positions that are already right count less (Lin et al.
// 2017, "Focal loss for dense object detection"). Top 1, if given, holds the probabilities.
class FocalLossLayer final : public LossLayer {
 public:
  explicit FocalLossLayer(const LayerParameter& param)
      : LossLayer(param),
        focus_{param.focal_loss_param().gamma(), param.focal_loss_param().alpha()} {
    if (param.focal_loss_param().type() != FocalLossParameter::ORIGIN) {
      throw Unsupported("focal_loss_param { type: LINEAR } is not supported; use ORIGIN");
    }
    Require(focus_.gamma >= 0, "gamma is ", focus_.gamma, "; it must not be negative");
  }

  LayerTraits traits() const override {
    return {.num_bottoms = 2, .min_tops = 1, .max_tops = 2, .is_loss = true};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    RequireLabelPerPosition(bottoms[0], Axis(bottoms[0]), bottoms[1]);
    std::vector<Shape> tops = {Shape{}};
    if (param().top_size() > 1) tops.push_back(bottoms[0]);
    return tops;
  }

  void EmitForward(GraphBuilder& graph) const override {
    const int axis = Axis(graph.shape(graph.bottom(0)));
    graph.Emit(ops::Softmax{.axis = axis}, {graph.bottom(0)}, {Probabilities(graph)});
    graph.Emit(ops::SoftmaxLoss{Rule(axis), focus_}, {Probabilities(graph), graph.bottom(1)},
               {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    const int axis = Axis(graph.shape(graph.bottom(0)));
    graph.Emit(ops::SoftmaxLossGrad{.rule = Rule(axis), .focus = focus_},
               {Probabilities(graph), graph.bottom(1), graph.top_diff(0)}, {graph.bottom_diff(0)});
  }

 private:
  int Axis(const Shape& scores) const {
    return scores.CanonicalAxis(param().softmax_param().axis());
  }
  ops::LabelRule Rule(int axis) const {
    return ParseLabelRule(param().loss_param(), axis, ops::Normalization::kValid);
  }
  Value* Probabilities(GraphBuilder& graph) const {
    return graph.num_tops() > 1 ? graph.top(1)
                                : graph.Saved("probabilities", graph.shape(graph.bottom(0)));
  }

  const ops::Focus focus_;
};

using SoftmaxWithFocalLossLayer = FocalLossLayer;

REGISTER_LAYER_CLASS(FocalLoss, "softmax_param", "loss_param");
REGISTER_LAYER_CLASS(SoftmaxWithFocalLoss, "focal_loss_param", "softmax_param", "loss_param");

}  // namespace
}  // namespace caffe
