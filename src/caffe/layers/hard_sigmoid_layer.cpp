#include "caffe/layer_factory.hpp"
#include "caffe/layers/neuron_layer.hpp"

namespace caffe {
namespace {

// y = min(1, max(0, alpha * x + beta)).
class HardSigmoidLayer final : public NeuronLayer {
 public:
  explicit HardSigmoidLayer(const LayerParameter& param)
      : NeuronLayer(param),
        alpha_(param.hard_sigmoid_param().alpha()),
        beta_(param.hard_sigmoid_param().beta()) {}

 private:
  Op ForwardOp() const override { return ops::HardSigmoid(alpha_, beta_); }
  Op GradientOp() const override { return ops::HardSigmoidGrad(alpha_, beta_); }

  const float alpha_, beta_;
};

REGISTER_LAYER_CLASS(HardSigmoid);

}  // namespace
}  // namespace caffe
