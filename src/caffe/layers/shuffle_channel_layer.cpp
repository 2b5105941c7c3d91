#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/rearrange_base.hpp"

namespace caffe {
namespace {

// Channel k of group g of `group` becomes channel k * group + g (Zhang et al. 2017, ShuffleNet).
class ShuffleChannelLayer final : public RearrangeBase {
 public:
  explicit ShuffleChannelLayer(const LayerParameter& param)
      : RearrangeBase(param), groups_(param.shuffle_channel_param().group()) {
    Require(groups_ > 0, "group is ", groups_, "; it must be at least 1");
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape& bottom = bottoms[0];
    Require(bottom.num_axes() >= 2, "the bottom has shape ", bottom,
            "; it must have items and channels");
    Require(bottom[1] % groups_ == 0, "the ", bottom[1], " channels cannot be divided into ",
            groups_, " groups; change group");
    return {bottom};
  }

 private:
  Rearrangement RearrangementOf(const Shape& bottom) const override {
    return {Shape{bottom[0], groups_, bottom[1] / groups_, bottom.count(2)}, {{0, 2, 1, 3}}};
  }

  const int64_t groups_;
};

REGISTER_LAYER_CLASS(ShuffleChannel);

}  // namespace
}  // namespace caffe
