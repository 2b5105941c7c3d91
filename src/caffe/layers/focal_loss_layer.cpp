#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/softmax_loss_base.hpp"

namespace caffe {
namespace {

// Reduces the weight of positions that are already correct (Lin et al. 2017, "Focal loss for dense
// object detection").
class FocalLossLayer final : public SoftmaxLossBase {
 public:
  explicit FocalLossLayer(const LayerParameter& param)
      : SoftmaxLossBase(param, /*label_smoothing=*/0, FocusOf(param.focal_loss_param())) {
    WarnOfUnusedLossFields(param, {"ignore_label", "normalize", "normalization",
                                   "weight_by_label_freqs", "class_weighting"});
  }

 private:
  static ops::Focus FocusOf(const FocalLossParameter& options) {
    Require(options.gamma() >= 0, "gamma is ", options.gamma(), "; it must not be negative");
    Require(options.type() == FocalLossParameter::ORIGIN || options.gamma() > 0, "gamma is ",
            options.gamma(), "; type: LINEAR divides by it, so that it must be above 0");
    return {options.gamma(), options.alpha(), options.type() == FocalLossParameter::LINEAR,
            options.beta()};
  }
};

using SoftmaxWithFocalLossLayer = FocalLossLayer;

REGISTER_LAYER_CLASS(FocalLoss, "softmax_param", "loss_param");
REGISTER_LAYER_CLASS(SoftmaxWithFocalLoss, "focal_loss_param", "softmax_param", "loss_param");

}  // namespace
}  // namespace caffe
