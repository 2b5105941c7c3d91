// Layers for plug-ins of tests.
#pragma once

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/activations.hpp"
#include "caffe/plugin.hpp"

namespace {

// y = `forward` * x, with the gradient dx = `backward` * dy.
class ScalingLayer : public caffe::Layer {
 public:
  ScalingLayer(const caffe::LayerParameter& param, float forward, float backward)
      : Layer(param), forward_(forward), backward_(backward) {}
  caffe::LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }
  std::vector<caffe::Shape> InferTopShapes(
      const std::vector<caffe::Shape>& bottoms) const override {
    return {bottoms[0]};
  }
  void EmitForward(caffe::GraphBuilder& graph) const override {
    graph.Emit(caffe::ops::Power(1, forward_, 0), {graph.bottom(0)}, {graph.top(0)});
  }
  void EmitBackward(caffe::GraphBuilder& graph) const override {
    graph.Emit(caffe::ops::Power(1, backward_, 0), {graph.top_diff(0)}, {graph.bottom_diff(0)});
  }

 private:
  const float forward_, backward_;
};

class DoublingLayer final : public ScalingLayer {
 public:
  explicit DoublingLayer(const caffe::LayerParameter& param) : ScalingLayer(param, 2, 2) {}
};

}  // namespace
