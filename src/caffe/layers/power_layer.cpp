#include "caffe/layer_factory.hpp"
#include "caffe/layers/neuron_layer.hpp"

namespace caffe {
namespace {

// y = (shift + scale * x)^power.
class PowerLayer final : public NeuronLayer {
 public:
  explicit PowerLayer(const LayerParameter& param)
      : NeuronLayer(param),
        power_(param.power_param().power()),
        scale_(param.power_param().scale()),
        shift_(param.power_param().shift()) {}

 private:
  Op ForwardOp() const override { return ops::Power(power_, scale_, shift_); }
  Op GradientOp() const override { return ops::PowerGrad(power_, scale_, shift_); }

  const float power_, scale_, shift_;
};

REGISTER_LAYER_CLASS(Power);

}  // namespace
}  // namespace caffe
