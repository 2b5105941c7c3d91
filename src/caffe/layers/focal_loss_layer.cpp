#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/softmax_loss_base.hpp"

namespace caffe {
namespace {

// Positions that are already right count less (Lin et al. 2017, "Focal loss for dense object
// detection").
class FocalLossLayer final : public SoftmaxLossBase {
 public:
  explicit FocalLossLayer(const LayerParameter& param)
      : SoftmaxLossBase(param, /*label_smoothing=*/0,
                        {param.focal_loss_param().gamma(), param.focal_loss_param().alpha()}) {
    const FocalLossParameter& options = param.focal_loss_param();
    if (options.type() != FocalLossParameter::ORIGIN) {
      throw Unsupported("focal_loss_param { type: LINEAR } is not supported; use ORIGIN");
    }
    Require(options.gamma() >= 0, "gamma is ", options.gamma(), "; it must not be negative");
  }
};

using SoftmaxWithFocalLossLayer = FocalLossLayer;

REGISTER_LAYER_CLASS(FocalLoss, "softmax_param", "loss_param");
REGISTER_LAYER_CLASS(SoftmaxWithFocalLoss, "focal_loss_param", "softmax_param", "loss_param");

}  // namespace
}  // namespace caffe
