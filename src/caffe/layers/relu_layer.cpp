#include "caffe/layer_factory.hpp"
#include "caffe/layers/neuron_layer.hpp"

namespace caffe {
namespace {

// ReLU and leaky ReLU:  y = max(x, 0) + negative_slope * min(x, 0).
class ReLULayer final : public NeuronLayer {
 public:
  explicit ReLULayer(const LayerParameter& param)
      : NeuronLayer(param), negative_slope_(param.relu_param().negative_slope()) {}

  LayerTraits traits() const override {
    return {.num_bottoms = 1, .num_tops = 1, .can_run_in_place = gradient_reads_top()};
  }

 private:
  Op ForwardOp() const override { return ops::Relu{negative_slope_}; }
  Op GradientOp() const override { return ops::ReluGrad{negative_slope_}; }
  // y has the sign of x.
  bool gradient_reads_top() const override { return negative_slope_ >= 0; }

  const float negative_slope_;
};

REGISTER_LAYER_CLASS(ReLU);

}  // namespace
}  // namespace caffe
