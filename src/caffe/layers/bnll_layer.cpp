#include "caffe/layer_factory.hpp"
#include "caffe/layers/neuron_layer.hpp"

namespace caffe {
namespace {

// Binomial normal log likelihood:  y = log(1 + exp(x)).
class BNLLLayer final : public NeuronLayer {
 public:
  using NeuronLayer::NeuronLayer;

 private:
  Op ForwardOp() const override { return ops::Bnll{}; }
  Op GradientOp() const override { return ops::BnllGrad{}; }
};

REGISTER_LAYER_CLASS(BNLL);

}  // namespace
}  // namespace caffe
