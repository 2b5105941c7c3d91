// Common base of losses of softmax scores.
#pragma once

#include <glog/logging.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "caffe/layers/item_losses.hpp"
#include "caffe/layers/loss_layer.hpp"
#include "caffe/ops/constant.hpp"
#include "caffe/ops/soft_labels.hpp"

namespace caffe {

// Cross-entropy of softmax scores with integer labels, or with labels of the scores' shape that
// give each class a share (Mixup), weighted by class if loss_param says so. Top 1, if present, is
// the probabilities. Top 2, if present, is each label's loss before the division, with which R-FCN
// selects hard examples; it has no gradient.
class SoftmaxLossBase : public LossLayer {
 public:
  LayerTraits traits() const override {
    return {.num_bottoms = 2, .min_tops = 1, .max_tops = 3, .is_loss = true};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const int axis = Axis(bottoms[0]);
    if (AreSoftLabels(bottoms[0], axis, bottoms[1])) {
      CheckSoftLabels(bottoms[1]);
    } else {
      RequireLabelPerPosition(bottoms[0], axis, bottoms[1]);
    }
    Require(weights_ == nullptr || static_cast<int64_t>(weights_->size()) == bottoms[0][axis],
            "class_weighting is given ", weights_ == nullptr ? 0 : weights_->size(), " times for ",
            bottoms[0][axis], " classes; give one factor for each");
    std::vector<Shape> tops = {Shape{}};
    if (param().top_size() > 1) tops.push_back(bottoms[0]);
    if (param().top_size() > 2) tops.push_back(bottoms[1]);
    return tops;
  }

  void EmitForward(GraphBuilder& graph) const override {
    Value* probabilities = Probabilities(graph);
    const int axis = Axis(graph.shape(graph.bottom(0)));
    graph.Emit(ops::Softmax{.axis = axis}, {graph.bottom(0)}, {probabilities});
    if (weights_) graph.Emit(ops::Constant{weights_}, {}, {Weights(graph)});
    const std::vector<Value*> inputs = WithWeights(graph, {probabilities, graph.bottom(1)});
    if (HasSoftLabels(graph)) {
      graph.Emit(ops::SoftLabelLoss{Rule(axis)}, inputs, {graph.top(0)});
      return;
    }
    graph.Emit(ops::SoftmaxLoss{Rule(axis), focus_}, inputs, {graph.top(0)});
    if (graph.num_tops() > 2) EmitLossOfEachLabel(graph, Rule(axis), focus_, inputs, graph.top(2));
  }

  void EmitBackward(GraphBuilder& graph) const override {
    const int axis = Axis(graph.shape(graph.bottom(0)));
    const ops::SoftmaxLossGrad hard{
        .rule = Rule(axis), .label_smoothing = label_smoothing_, .focus = focus_};
    graph.Emit(HasSoftLabels(graph) ? Op(ops::SoftLabelLossGrad{hard}) : Op(hard),
               WithWeights(graph, {Probabilities(graph), graph.bottom(1), graph.top_diff(0)}),
               {graph.bottom_diff(0)});
  }

 protected:
  // See ops::SoftmaxLossGrad.
  SoftmaxLossBase(const LayerParameter& param, float label_smoothing, ops::Focus focus)
      : LossLayer(param), label_smoothing_(label_smoothing), focus_(focus) {
    const LossParameter& loss = param.loss_param();
    if (!loss.weight_by_label_freqs()) {
      LOG_IF(WARNING, loss.class_weighting_size() > 0)
          << "layer '" << param.name()
          << "': class_weighting has no effect without weight_by_label_freqs: true, as in SegNet";
      return;
    }
    const auto& given = loss.class_weighting();
    Require(std::all_of(given.begin(), given.end(), [](float one) { return one >= 0; }),
            "class_weighting has a factor below 0; give 0 or more for each class");
    weights_ = std::make_shared<const std::vector<float>>(given.begin(), given.end());
  }

 private:
  void CheckSoftLabels(const Shape& labels) const {
    const LossParameter& loss = param().loss_param();
    Require(!loss.has_ignore_label(), "ignore_label is ", loss.ignore_label(),
            ", but the labels have shape ", labels,
            ", that is a share of each class; remove ignore_label, or give whole numbers");
    Require(focus_.gamma == 0 && focus_.alpha == 1 && !focus_.is_linear, "the labels have shape ",
            labels,
            ", that is a share of each class, which the focal loss does not take; use "
            "SoftmaxWithLoss, or give whole numbers");
    Require(param().top_size() < 3, "has ", param().top_size(), " tops, but labels of shape ",
            labels,
            " are shares of classes, and the third top is the loss of each label; remove "
            "it, or give whole numbers");
  }
  bool HasSoftLabels(const GraphBuilder& graph) const {
    const Shape& scores = graph.shape(graph.bottom(0));
    return AreSoftLabels(scores, Axis(scores), graph.shape(graph.bottom(1)));
  }
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

  Value* Weights(GraphBuilder& graph) const {
    return graph.Saved("class_weights", Shape{static_cast<int64_t>(weights_->size())});
  }
  std::vector<Value*> WithWeights(GraphBuilder& graph, std::vector<Value*> inputs) const {
    if (weights_ != nullptr) inputs.push_back(Weights(graph));
    return inputs;
  }

  const float label_smoothing_;
  const ops::Focus focus_;
  std::shared_ptr<const std::vector<float>> weights_;  // one per class; null: equal weights
};

}  // namespace caffe
