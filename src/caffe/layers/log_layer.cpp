#include "caffe/layer_factory.hpp"
#include "caffe/layers/logarithm_base.hpp"
#include "caffe/layers/neuron_layer.hpp"

namespace caffe {
namespace {

// y = logarithm of (shift + scale * x) to `base`; base -1 means e.
class LogLayer final : public NeuronLayer {
 public:
  explicit LogLayer(const LayerParameter& param)
      : NeuronLayer(param),
        factor_(1 / LogOfBase(param.log_param().base())),
        scale_(param.log_param().scale()),
        shift_(param.log_param().shift()) {
    Require(param.log_param().base() != 1, "base is 1, to which there is no logarithm");
  }

 private:
  Op ForwardOp() const override { return ops::Log(factor_, scale_, shift_); }
  Op GradientOp() const override { return ops::LogGrad(factor_, scale_, shift_); }

  const double factor_;
  const float scale_, shift_;
};

REGISTER_LAYER_CLASS(Log);

}  // namespace
}  // namespace caffe
