#include "caffe/layer_factory.hpp"
#include "caffe/layers/neuron_layer.hpp"

namespace caffe {
namespace {

// Exponential linear unit; with NVCaffe's lambda, the scaled one. The gradient is the true
// derivative; NVCaffe's is wrong for lambda other than 1.
class ELULayer final : public NeuronLayer {
 public:
  explicit ELULayer(const LayerParameter& param)
      : NeuronLayer(param),
        alpha_(param.elu_param().alpha()),
        lambda_(param.elu_param().lambda()) {}

 private:
  Op ForwardOp() const override { return ops::Elu(alpha_, lambda_); }
  Op GradientOp() const override { return ops::EluGrad(alpha_, lambda_); }

  const float alpha_, lambda_;
};

REGISTER_LAYER_CLASS(ELU);

}  // namespace
}  // namespace caffe
