// What pointwise layers have in common whose gradient follows from their output alone.
#pragma once

#include "caffe/layer.hpp"
#include "caffe/ops/pointwise.hpp"

namespace caffe {

// y = Forward(x);  dx = Gradient(y, dy). Reading y lets the memory plan reuse x as soon as y
// exists.
template <typename Forward, typename Gradient>
class ActivationLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override {
    return {.num_bottoms = 1, .num_tops = 1, .can_run_in_place = true};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    return {bottoms[0]};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(Forward{}, {graph.bottom(0)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    graph.Emit(Gradient{}, {graph.top(0), graph.top_diff(0)}, {graph.bottom_diff(0)});
  }
};

}  // namespace caffe
