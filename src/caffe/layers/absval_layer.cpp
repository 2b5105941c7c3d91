#include "caffe/layer_factory.hpp"
#include "caffe/layers/neuron_layer.hpp"

namespace caffe {
namespace {

// y = |x|.
class AbsValLayer final : public NeuronLayer {
 public:
  using NeuronLayer::NeuronLayer;

 private:
  Op ForwardOp() const override { return ops::Abs{}; }
  Op GradientOp() const override { return ops::AbsGrad{}; }
};

REGISTER_LAYER_CLASS(AbsVal);

}  // namespace
}  // namespace caffe
