#include "caffe/layer_factory.hpp"
#include "caffe/layers/neuron_layer.hpp"

namespace caffe {
namespace {

// y = x * tanh(log(1 + exp(x))).
class MishLayer final : public NeuronLayer {
 public:
  using NeuronLayer::NeuronLayer;

 private:
  Op ForwardOp() const override { return ops::Mish{}; }
  Op GradientOp() const override { return ops::MishGrad{}; }
};

REGISTER_LAYER_CLASS(Mish);

}  // namespace
}  // namespace caffe
