#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/neuron_layer.hpp"

namespace caffe {
namespace {

// y = min(threshold, max(0, x)).
class ReLU6Layer final : public NeuronLayer {
 public:
  explicit ReLU6Layer(const LayerParameter& param)
      : NeuronLayer(param), threshold_(param.relu6_param().threshold()) {
    Require(threshold_ > 0, "threshold is ", threshold_, "; it must be above 0");
  }

 private:
  Op ForwardOp() const override { return ops::Clip(0, threshold_); }
  Op GradientOp() const override { return ops::ClipGrad(0, threshold_); }

  const float threshold_;
};

REGISTER_LAYER_CLASS(ReLU6);

}  // namespace
}  // namespace caffe
