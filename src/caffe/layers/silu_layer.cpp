#include "caffe/layer_factory.hpp"
#include "caffe/layers/neuron_layer.hpp"

namespace caffe {
namespace {

// y = x * sigmoid(x): Swish without a factor.
class SiLULayer final : public NeuronLayer {
 public:
  using NeuronLayer::NeuronLayer;

 private:
  Op ForwardOp() const override { return ops::Swish(1); }
  Op GradientOp() const override { return ops::SwishGrad(1); }
};

REGISTER_LAYER_CLASS(SiLU);

}  // namespace
}  // namespace caffe
