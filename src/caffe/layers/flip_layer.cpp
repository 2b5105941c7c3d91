#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/reverse_base.hpp"

namespace caffe {
namespace {

// Mirrors images left to right, top to bottom, or both.
class FlipLayer final : public ReverseBase {
 public:
  explicit FlipLayer(const LayerParameter& param)
      : ReverseBase(param), options_(param.flip_param()) {
    Require(options_.flip_width() || options_.flip_height(),
            "flip_width and flip_height are false; set one, or leave out the layer");
  }

 private:
  std::vector<int> Axes(const Shape& bottom) const override {
    Require(bottom.num_axes() == 4, "needs a bottom with 4 axes (N,C,H,W), got shape ", bottom);
    std::vector<int> axes;
    if (options_.flip_height()) axes.push_back(2);
    if (options_.flip_width()) axes.push_back(3);
    return axes;
  }

  const FlipParameter options_;
};

REGISTER_LAYER_CLASS(Flip);

}  // namespace
}  // namespace caffe
