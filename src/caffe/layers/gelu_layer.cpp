#include "caffe/layer_factory.hpp"
#include "caffe/layers/neuron_layer.hpp"

namespace caffe {
namespace {

// Gaussian error linear unit:  y = x * P(X <= x), where X is normally distributed.
class GELULayer final : public NeuronLayer {
 public:
  using NeuronLayer::NeuronLayer;

 private:
  Op ForwardOp() const override { return ops::Gelu{}; }
  Op GradientOp() const override { return ops::GeluGrad{}; }
};

REGISTER_LAYER_CLASS(GELU);

}  // namespace
}  // namespace caffe
