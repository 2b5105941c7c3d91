// What losses of softmax scores share.
#pragma once

#include "caffe/layers/loss_layer.hpp"

namespace caffe {

// Cross-entropy of softmax scores with integer labels. Top 1, if given, holds the probabilities.
class SoftmaxLossBase : public LossLayer {
 public:
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
    graph.Emit(ops::SoftmaxLoss{Rule(axis), focus_}, {probabilities, graph.bottom(1)},
               {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    const int axis = Axis(graph.shape(graph.bottom(0)));
    graph.Emit(
        ops::SoftmaxLossGrad{
            .rule = Rule(axis), .label_smoothing = label_smoothing_, .focus = focus_},
        {Probabilities(graph), graph.bottom(1), graph.top_diff(0)}, {graph.bottom_diff(0)});
  }

 protected:
  // See ops::SoftmaxLossGrad.
  SoftmaxLossBase(const LayerParameter& param, float label_smoothing, ops::Focus focus)
      : LossLayer(param), label_smoothing_(label_smoothing), focus_(focus) {}

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
  const ops::Focus focus_;
};

}  // namespace caffe
