#include "caffe/layer_factory.hpp"
#include "caffe/layers/neuron_layer.hpp"

namespace caffe {
namespace {

// y = x * sigmoid(beta * x).
class SwishLayer final : public NeuronLayer {
 public:
  explicit SwishLayer(const LayerParameter& param)
      : NeuronLayer(param), beta_(param.swish_param().beta()) {}

 private:
  Op ForwardOp() const override { return ops::Swish(beta_); }
  Op GradientOp() const override { return ops::SwishGrad(beta_); }

  const float beta_;
};

REGISTER_LAYER_CLASS(Swish);

}  // namespace
}  // namespace caffe
