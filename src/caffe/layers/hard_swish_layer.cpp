#include "caffe/layer_factory.hpp"
#include "caffe/layers/neuron_layer.hpp"

namespace caffe {
namespace {

// y = x * min(6, max(0, x + 3)) / 6.
class HardSwishLayer final : public NeuronLayer {
 public:
  using NeuronLayer::NeuronLayer;

 private:
  Op ForwardOp() const override { return ops::HardSwish{}; }
  Op GradientOp() const override { return ops::HardSwishGrad{}; }
};

REGISTER_LAYER_CLASS(HardSwish);

}  // namespace
}  // namespace caffe
