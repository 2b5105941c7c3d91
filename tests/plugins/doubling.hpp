// A layer for plug-ins of tests: y = 2 x.
#pragma once

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/activations.hpp"
#include "caffe/plugin.hpp"

namespace {

class DoublingLayer final : public caffe::Layer {
 public:
  using Layer::Layer;
  caffe::LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }
  std::vector<caffe::Shape> InferTopShapes(
      const std::vector<caffe::Shape>& bottoms) const override {
    return {bottoms[0]};
  }
  void EmitForward(caffe::GraphBuilder& graph) const override {
    graph.Emit(caffe::ops::Power(1, 2, 0), {graph.bottom(0)}, {graph.top(0)});
  }
  void EmitBackward(caffe::GraphBuilder& graph) const override {
    graph.Emit(caffe::ops::Power(1, 2, 0), {graph.top_diff(0)}, {graph.bottom_diff(0)});
  }
};

}  // namespace
