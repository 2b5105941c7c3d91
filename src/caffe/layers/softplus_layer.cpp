#include "caffe/layer_factory.hpp"
#include "caffe/layers/neuron_layer.hpp"

namespace caffe {
namespace {

// y = log(1 + exp(x)): BNLL by the name that other frameworks use.
class SoftplusLayer final : public NeuronLayer {
 public:
  using NeuronLayer::NeuronLayer;

 private:
  Op ForwardOp() const override { return ops::Bnll{}; }
  Op GradientOp() const override { return ops::BnllGrad{}; }
};

REGISTER_LAYER_CLASS(Softplus);

}  // namespace
}  // namespace caffe
