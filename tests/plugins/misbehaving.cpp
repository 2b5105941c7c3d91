// Layers that break their contract, each in its own way.
#include "tests/plugins/doubling.hpp"

CAFFE_PLUGIN("misbehaving", "1.0");

namespace {

class ThrowingShapesLayer : public caffe::Layer {
 public:
  using Layer::Layer;
  caffe::LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }
  std::vector<caffe::Shape> InferTopShapes(const std::vector<caffe::Shape>&) const override {
    throw std::runtime_error("the moon is full");
  }
  void EmitForward(caffe::GraphBuilder&) const override {}
};

class TooFewShapesLayer final : public ThrowingShapesLayer {
 public:
  using ThrowingShapesLayer::ThrowingShapesLayer;
  std::vector<caffe::Shape> InferTopShapes(const std::vector<caffe::Shape>&) const override {
    return {};
  }
};

class SilentLayer final : public ThrowingShapesLayer {
 public:
  using ThrowingShapesLayer::ThrowingShapesLayer;
  std::vector<caffe::Shape> InferTopShapes(
      const std::vector<caffe::Shape>& bottoms) const override {
    return {bottoms[0]};
  }
};

// y = x / 1000, and half of its gradient.
class HalfGradientLayer final : public caffe::Layer {
 public:
  using Layer::Layer;
  caffe::LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }
  std::vector<caffe::Shape> InferTopShapes(
      const std::vector<caffe::Shape>& bottoms) const override {
    return {bottoms[0]};
  }
  void EmitForward(caffe::GraphBuilder& graph) const override {
    graph.Emit(caffe::ops::Power(1, 0.001f, 0), {graph.bottom(0)}, {graph.top(0)});
  }
  void EmitBackward(caffe::GraphBuilder& graph) const override {
    graph.Emit(caffe::ops::Power(1, 0.0005f, 0), {graph.top_diff(0)}, {graph.bottom_diff(0)});
  }
};

REGISTER_LAYER_CLASS(HalfGradient);
REGISTER_LAYER_CLASS(ThrowingShapes);
REGISTER_LAYER_CLASS(TooFewShapes);
REGISTER_LAYER_CLASS(Silent);

}  // namespace
