#include <algorithm>
#include <cmath>

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/resize_base.hpp"

namespace caffe {
namespace {

// Bilinear resizing of DeepLab and PSPNet, where the centres of the corner pixels coincide, or of
// PyTorch, where the edges of the images do. The bottom is first cropped by -pad_beg and -pad_end.
class InterpLayer final : public ResizeBase {
 public:
  explicit InterpLayer(const LayerParameter& param)
      : ResizeBase(param), options_(param.interp_param()) {
    Require(options_.pad_beg() <= 0 && options_.pad_end() <= 0, "pad_beg is ", options_.pad_beg(),
            " and pad_end ", options_.pad_end(), "; only cropping is supported, so use 0 or less");
    Require(options_.zoom_factor() >= 1 && options_.shrink_factor() >= 1, "zoom_factor is ",
            options_.zoom_factor(), " and shrink_factor ", options_.shrink_factor(),
            "; they must be at least 1");
    Require(options_.has_height() == options_.has_width(),
            "has only one of height and width; give both");
    Require(!options_.has_height() || !has_factor(),
            "has height and width as well as zoom_factor or shrink_factor; leave out one kind");
    Require(param.bottom_size() == 2 || options_.has_height() || has_factor(),
            "has no size; set interp_param { height width }, zoom_factor or shrink_factor, or give "
            "a second bottom");
  }

 private:
  bool has_factor() const { return options_.has_zoom_factor() || options_.has_shrink_factor(); }

  ImageSize TopSize(const std::vector<Shape>& bottoms) const override {
    const ImageSize cropped = Cropped(ImageSizeOf(bottoms[0]));
    Require(cropped[0] > 0 && cropped[1] > 0, "pad_beg ", options_.pad_beg(), " and pad_end ",
            options_.pad_end(), " leave nothing of ", bottoms[0][2], "x", bottoms[0][3], " pixels");
    if (bottoms.size() == 2) {
      return SizeOfSecondBottom(bottoms, options_.has_height() || has_factor());
    }
    if (options_.has_height()) return {options_.height(), options_.width()};
    ImageSize size;
    const int64_t corner = options_.align_corners() ? 1 : 0;
    for (const int axis : {0, 1}) {
      const int64_t shrunk = (cropped[axis] - corner) / options_.shrink_factor();
      size[axis] = shrunk * options_.zoom_factor() + corner;
    }
    return size;
  }

  AxisMatrix Filter(int axis, const ImageSize& from, const ImageSize& to) const override {
    const int64_t last = Cropped(from)[axis] - 1, outputs = to[axis];
    AxisMatrix filter(from[axis]);
    for (int64_t output = 0; output < outputs; ++output) {
      const double position = Position(output, outputs, last);
      const int64_t left = std::min(static_cast<int64_t>(position), last);
      const double share = position - static_cast<double>(left);
      const int64_t place = left - options_.pad_beg();
      filter.AddRow({{place, 1 - share}, {place + (left < last ? 1 : 0), share}});
    }
    return filter;
  }

  // Where an output lies in the input, whose pixels are at 0 to `last`.
  double Position(int64_t output, int64_t outputs, int64_t last) const {
    const auto place = static_cast<double>(output);
    const auto size = static_cast<double>(outputs), limit = static_cast<double>(last);
    if (options_.align_corners()) return outputs > 1 ? place * limit / (size - 1) : 0;
    return std::clamp((place + 0.5) * (limit + 1) / size - 0.5, 0.0, limit);
  }

  ImageSize Cropped(const ImageSize& size) const {
    const int64_t pad = int64_t{options_.pad_beg()} + options_.pad_end();
    return {size[0] + pad, size[1] + pad};
  }

  const InterpParameter options_;
};

REGISTER_LAYER_CLASS(Interp);

}  // namespace
}  // namespace caffe
