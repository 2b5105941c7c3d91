#include "caffe/data/transformers/affine.hpp"
#include "caffe/data/transformers/augmentation.hpp"
#include "caffe/data/transformers/boxes_in_window.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

class Expansion final : public Augmentation {
 public:
  explicit Expansion(const TransformationParameter& param)
      : param_(param), background_(MeanColor(param)) {
    Require(param.expand_param().max_expand_ratio() >= 1, "expand_param: max_expand_ratio is ",
            param.expand_param().max_expand_ratio(), "; it must be at least 1");
  }

  void Apply(Draws& draws, Picture* picture) const override {
    if (!draws.Chance(param_.expand_param().prob())) return;
    const float ratio = draws.Uniform(1, param_.expand_param().max_expand_ratio());
    const int rows = picture->image.rows, columns = picture->image.cols;
    const int height = static_cast<int>(static_cast<float>(rows) * ratio),
              width = static_cast<int>(static_cast<float>(columns) * ratio);
    const int top = draws.Below(height - rows + 1), left = draws.Below(width - columns + 1);
    cv::Mat canvas(height, width, picture->image.type(), background_);
    picture->image.copyTo(canvas(cv::Rect(left, top, columns, rows)));
    picture->image = canvas;
    // The canvas in coordinates of the image.
    const auto part = [](int pixels, int of) {
      return static_cast<float>(pixels) / static_cast<float>(of);
    };
    ObjectBox window;
    window.xmin = part(-left, columns), window.xmax = part(width - left, columns);
    window.ymin = part(-top, rows), window.ymax = part(height - top, rows);
    picture->boxes = BoxesInWindow(param_, window, picture->boxes);
  }

 private:
  const TransformationParameter param_;
  const cv::Scalar background_;
};

}  // namespace

std::unique_ptr<Augmentation> MakeExpansion(const TransformationParameter& param) {
  if (!param.has_expand_param()) return nullptr;
  return std::make_unique<Expansion>(param);
}

}  // namespace caffe::data
