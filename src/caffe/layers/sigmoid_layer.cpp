#include "caffe/layer_factory.hpp"
#include "caffe/layers/activation_layer.hpp"

namespace caffe {
namespace {

// The logistic function:  y = 1 / (1 + exp(-x)).
class SigmoidLayer final : public ActivationLayer<ops::Sigmoid, ops::SigmoidGrad> {
 public:
  using ActivationLayer::ActivationLayer;
};

REGISTER_LAYER_CLASS(Sigmoid);

}  // namespace
}  // namespace caffe
