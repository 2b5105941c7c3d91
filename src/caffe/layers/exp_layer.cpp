#include "caffe/layer_factory.hpp"
#include "caffe/layers/logarithm_base.hpp"
#include "caffe/layers/neuron_layer.hpp"

namespace caffe {
namespace {

// y = base^(shift + scale * x); base -1 means e.
class ExpLayer final : public NeuronLayer {
 public:
  explicit ExpLayer(const LayerParameter& param)
      : NeuronLayer(param),
        log_base_(LogOfBase(param.exp_param().base())),
        scale_(param.exp_param().scale()),
        shift_(param.exp_param().shift()) {}

 private:
  Op ForwardOp() const override { return ops::Exp(log_base_ * scale_, log_base_ * shift_); }
  Op GradientOp() const override { return ops::ExpGrad(log_base_ * scale_); }
  bool gradient_reads_top() const override { return true; }

  const double log_base_;
  const float scale_, shift_;
};

REGISTER_LAYER_CLASS(Exp);

}  // namespace
}  // namespace caffe
