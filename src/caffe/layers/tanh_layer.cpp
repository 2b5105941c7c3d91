#include "caffe/layer_factory.hpp"
#include "caffe/layers/neuron_layer.hpp"

namespace caffe {
namespace {

// Hyperbolic tangent:  y = tanh(x).
class TanHLayer final : public NeuronLayer {
 public:
  using NeuronLayer::NeuronLayer;

 private:
  Op ForwardOp() const override { return ops::Tanh{}; }
  Op GradientOp() const override { return ops::TanhGrad{}; }
  bool gradient_reads_top() const override { return true; }
};

REGISTER_LAYER_CLASS(TanH);

}  // namespace
}  // namespace caffe
