#include "caffe/layer_factory.hpp"
#include "caffe/layers/neuron_layer.hpp"

namespace caffe {
namespace {

// Logistic function:  y = 1 / (1 + exp(-x)).
class SigmoidLayer final : public NeuronLayer {
 public:
  using NeuronLayer::NeuronLayer;

 private:
  Op ForwardOp() const override { return ops::Sigmoid{}; }
  Op GradientOp() const override { return ops::SigmoidGrad{}; }
  bool gradient_reads_top() const override { return true; }
};

REGISTER_LAYER_CLASS(Sigmoid);

}  // namespace
}  // namespace caffe
