#include <opencv2/imgproc.hpp>

#include "caffe/data/transformers/affine.hpp"
#include "caffe/data/transformers/augmentation.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

constexpr uint32_t kMostPixels = 1024;

const TransformationParameter& Checked(const TransformationParameter& param) {
  Require(param.pad() <= kMostPixels, "transform_param: pad is ", param.pad(),
          " pixels; give 0 to ", kMostPixels);
  Require(param.crop_size() > 0 || (param.crop_h() > 0 && param.crop_w() > 0),
          "transform_param: pad is ", param.pad(), " pixels around the image, out of which ",
          "nothing is cut; give crop_size, or crop_h and crop_w");
  Require(!param.has_mean_file(), "transform_param has pad and mean_file '", param.mean_file(),
          "', which holds no mean of the pixels around the image; use mean_value");
  return param;
}

class Padding final : public Augmentation {
 public:
  explicit Padding(const TransformationParameter& param)
      : pixels_(static_cast<int>(Checked(param).pad())), outside_(MeanColor(param)) {}

  void Apply(Draws& /*draws*/, Picture* picture) const override {
    cv::Mat padded;
    cv::copyMakeBorder(picture->image, padded, pixels_, pixels_, pixels_, pixels_,
                       cv::BORDER_CONSTANT, outside_);
    picture->image = padded;
  }

 private:
  const int pixels_;
  const cv::Scalar outside_;
};

}  // namespace

std::unique_ptr<Augmentation> MakePadding(const TransformationParameter& param) {
  if (param.pad() == 0) return nullptr;
  return std::make_unique<Padding>(param);
}

}  // namespace caffe::data
