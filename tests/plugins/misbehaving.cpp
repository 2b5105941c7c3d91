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
class HalfGradientLayer final : public ScalingLayer {
 public:
  explicit HalfGradientLayer(const caffe::LayerParameter& param)
      : ScalingLayer(param, 0.001f, 0.0005f) {}
};

// Reads an invalid address.
class FaultyLayer final : public ThrowingShapesLayer {
 public:
  using ThrowingShapesLayer::ThrowingShapesLayer;
  std::vector<caffe::Shape> InferTopShapes(const std::vector<caffe::Shape>&) const override {
    volatile uintptr_t nowhere = 0x10;
    return {caffe::Shape{*reinterpret_cast<volatile int64_t*>(nowhere)}};
  }
};

REGISTER_LAYER_CLASS(Faulty);
REGISTER_LAYER_CLASS(HalfGradient);
REGISTER_LAYER_CLASS(ThrowingShapes);
REGISTER_LAYER_CLASS(TooFewShapes);
REGISTER_LAYER_CLASS(Silent);

}  // namespace
