#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/loss_layer.hpp"

namespace caffe {
namespace {

// Cross-entropy of softmax scores with integer labels. Top 1, if given, holds the probabilities.
// label_smoothing takes part in the gradient alone: as in NVCaffe, the loss that is reported does
// not know of it.
class SoftmaxWithLossLayer final : public LossLayer {
 public:
  explicit SoftmaxWithLossLayer(const LayerParameter& param)
      : LossLayer(param), label_smoothing_(param.loss_param().label_smoothing()) {
    Require(label_smoothing_ >= 0 && label_smoothing_ < 1, "label_smoothing is ", label_smoothing_,
            "; it must be at least 0 and below 1");
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
    Value* probabilities = Probabilities(graph);
    const int axis = Axis(graph.shape(graph.bottom(0)));
    graph.Emit(ops::Softmax{.axis = axis}, {graph.bottom(0)}, {probabilities});
    graph.Emit(ops::SoftmaxLoss{Rule(axis)}, {probabilities, graph.bottom(1)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    const int axis = Axis(graph.shape(graph.bottom(0)));
    graph.Emit(ops::SoftmaxLossGrad{Rule(axis), label_smoothing_},
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

  const float label_smoothing_;
};

REGISTER_LAYER_CLASS(SoftmaxWithLoss, "softmax_param", "loss_param");

}  // namespace
}  // namespace caffe
