#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/neuron_layer.hpp"

namespace caffe {
namespace {

// y = x limited to [min, max].
class ClipLayer final : public NeuronLayer {
 public:
  explicit ClipLayer(const LayerParameter& param)
      : NeuronLayer(param), min_(param.clip_param().min()), max_(param.clip_param().max()) {
    // Without bounds everything would be clipped to 0.
    Require(param.has_clip_param(), "clip_param { min max } is missing");
    Require(min_ <= max_, "clip_param has min ", min_, " above max ", max_, "; exchange them");
  }

 private:
  Op ForwardOp() const override { return ops::Clip(min_, max_); }
  Op GradientOp() const override { return ops::ClipGrad(min_, max_); }

  const float min_, max_;
};

REGISTER_LAYER_CLASS(Clip);

}  // namespace
}  // namespace caffe
