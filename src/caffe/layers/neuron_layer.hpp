// Common base of elementwise layers.
#pragma once

#include "caffe/layer.hpp"
#include "caffe/ops/activations.hpp"
#include "caffe/ops/pointwise.hpp"

namespace caffe {

// y = ForwardOp(x);  dx = GradientOp(x or y, dy).
class NeuronLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override {
    return {.num_bottoms = 1, .num_tops = 1, .can_run_in_place = true};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    return {bottoms[0]};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ForwardOp(), {graph.bottom(0)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    Value* source = gradient_reads_top() ? graph.top(0) : graph.bottom(0);
    graph.Emit(GradientOp(), {source, graph.top_diff(0)}, {graph.bottom_diff(0)});
  }

 protected:
  virtual Op ForwardOp() const = 0;
  virtual Op GradientOp() const = 0;
  // If the gradient depends only on y, the memory plan may reuse x once y is computed.
  virtual bool gradient_reads_top() const { return false; }
};

}  // namespace caffe
