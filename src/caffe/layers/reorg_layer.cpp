#include "caffe/core/saturating_product.hpp"
#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/rearrange_base.hpp"

namespace caffe {
namespace {

// Moves blocks of stride x stride pixels to channels, or with `reverse` channels to blocks. The
// order is darknet's, on which the weights of YOLO 2 depend: without `reverse` the bottom's memory
// is read as C / stride^2 planes of H * stride x W * stride pixels, whatever its shape.
class ReorgLayer final : public RearrangeBase {
 public:
  explicit ReorgLayer(const LayerParameter& param)
      : RearrangeBase(param), stride_(param.reorg_param().stride()) {
    Require(stride_ > 0, "stride is ", stride_, "; it must be at least 1");
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape& bottom = bottoms[0];
    Require(bottom.num_axes() == 4, "needs a bottom with 4 axes (N,C,H,W), got shape ", bottom);
    const int64_t area = SaturatingProduct({stride_, stride_});
    Require(bottom[1] % area == 0, "the ", bottom[1], " channels cannot be divided by ", area,
            ", the pixels of a block of stride ", stride_);
    if (reverses()) {
      return {Shape{bottom[0], bottom[1] / area, bottom[2] * stride_, bottom[3] * stride_}};
    }
    Require(bottom[2] % stride_ == 0 && bottom[3] % stride_ == 0, "the bottom has ", bottom[2], "x",
            bottom[3], " pixels; both sides must be multiples of stride ", stride_);
    return {Shape{bottom[0], bottom[1] * area, bottom[2] / stride_, bottom[3] / stride_}};
  }

 private:
  bool reverses() const { return param().reorg_param().reverse(); }

  Rearrangement RearrangementOf(const Shape& bottom) const override {
    const int64_t n = bottom[0], c = bottom[1] / (stride_ * stride_), h = bottom[2], w = bottom[3];
    if (reverses()) return {Shape{n, stride_, stride_, c, h, w}, {{0, 3, 4, 1, 5, 2}}};
    return {Shape{n, c, h, stride_, w, stride_}, {{0, 3, 5, 1, 2, 4}}};
  }

  const int64_t stride_;
};

REGISTER_LAYER_CLASS(Reorg);

}  // namespace
}  // namespace caffe
