#include "caffe/layer_factory.hpp"
#include "caffe/layers/activation_layer.hpp"

namespace caffe {
namespace {

// Hyperbolic tangent:  y = tanh(x).
class TanHLayer final : public ActivationLayer<ops::Tanh, ops::TanhGrad> {
 public:
  using ActivationLayer::ActivationLayer;
};

REGISTER_LAYER_CLASS(TanH);

}  // namespace
}  // namespace caffe
