#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/softmax_loss_base.hpp"

namespace caffe {
namespace {

// label_smoothing affects only the gradient, as in NVCaffe: the reported loss ignores it.
class SoftmaxWithLossLayer final : public SoftmaxLossBase {
 public:
  explicit SoftmaxWithLossLayer(const LayerParameter& param)
      : SoftmaxLossBase(param, param.loss_param().label_smoothing(), ops::Focus{}) {
    const float smoothing = param.loss_param().label_smoothing();
    Require(smoothing >= 0 && smoothing < 1, "label_smoothing is ", smoothing,
            "; it must be at least 0 and below 1");
  }
};

using SoftmaxWithLossOHEMLayer = SoftmaxWithLossLayer;  // R-FCN's name

REGISTER_LAYER_CLASS(SoftmaxWithLoss, "softmax_param", "loss_param");
REGISTER_LAYER_CLASS(SoftmaxWithLossOHEM, "softmax_param", "loss_param");

}  // namespace
}  // namespace caffe
