#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/rearrange_base.hpp"

namespace caffe {
namespace {

// Each block of r * r channels becomes r x r pixels (Shi et al. 2016): channel c * r * r + i * r +
// j of pixel (y, x) is channel c of pixel (y * r + i, x * r + j).
class PixelShuffleLayer final : public RearrangeBase {
 public:
  explicit PixelShuffleLayer(const LayerParameter& param)
      : RearrangeBase(param), factor_(param.pixel_shuffle_param().upscale_factor()) {
    Require(factor_ >= 1 && factor_ <= kMostFactor, "upscale_factor is ", factor_,
            "; it must be from 1 to ", kMostFactor);
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape& bottom = bottoms[0];
    Require(bottom.num_axes() == 4, "needs a bottom with 4 axes (N,C,H,W), got shape ", bottom);
    Require(bottom[1] % (factor_ * factor_) == 0, "the ", bottom[1],
            " channels cannot be divided by the square of upscale_factor, ", factor_ * factor_);
    return {Shape{bottom[0], bottom[1] / (factor_ * factor_), bottom[2] * factor_,
                  bottom[3] * factor_}};
  }

 private:
  static constexpr int64_t kMostFactor = 1024;

  Rearrangement RearrangementOf(const Shape& bottom) const override {
    return {
        Shape{bottom[0], bottom[1] / (factor_ * factor_), factor_, factor_, bottom[2], bottom[3]},
        {{0, 1, 4, 2, 5, 3}}};
  }

  const int64_t factor_;
};

REGISTER_LAYER_CLASS(PixelShuffle);

}  // namespace
}  // namespace caffe
