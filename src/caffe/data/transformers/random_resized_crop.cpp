#include "caffe/data/transformers/random_resized_crop.hpp"

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "caffe/data/transformers/augmentation.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

PartRange RangeOf(const RandomResizedCropParameter& param) {
  return {param.min_area(), param.max_area(), param.min_ratio(), param.max_ratio()};
}

class RandomResizedCrop final : public Augmentation {
 public:
  explicit RandomResizedCrop(const TransformationParameter& param)
      : param_(param.random_resized_crop()),
        height_(static_cast<int>(param.crop_h() > 0 ? param.crop_h() : param.crop_size())),
        width_(static_cast<int>(param.crop_w() > 0 ? param.crop_w() : param.crop_size())) {
    CheckPartRange("random_resized_crop", RangeOf(param_));
    Require(height_ > 0 && width_ > 0,
            "random_resized_crop needs the size to which it resizes; give crop_size, or crop_h and "
            "crop_w");
    Require(!ResizesAtRandom(param),
            "transform_param has random_resized_crop and img_rand_resize_*, rand_resize_ratio_* or "
            "*_stretch_*, which both choose the scale; keep one");
  }

  void Apply(Draws& draws, Picture* picture) const override {
    const cv::Mat& image = picture->image;
    const ImagePart part = ChooseResizedCrop(param_, image.rows, image.cols, draws);
    const cv::Mat cut = image(cv::Rect(part.left, part.top, part.width, part.height));
    cv::Mat resized;
    cv::resize(cut, resized, cv::Size(width_, height_), 0, 0, Interpolation(part));
    picture->image = resized;
  }

 private:
  // Bilinear interpolation would skip pixels if the image shrinks to less than half of its width
  // and height; then the pixels of each area are averaged.
  int Interpolation(const ImagePart& part) const {
    const bool shrinks_much = part.height >= 2 * height_ && part.width >= 2 * width_;
    return shrinks_much ? cv::INTER_AREA : cv::INTER_LINEAR;
  }

  const RandomResizedCropParameter param_;
  const int height_, width_;
};

}  // namespace

ImagePart ChooseResizedCrop(const RandomResizedCropParameter& param, int height, int width,
                            Draws& draws) {
  const PartRange range = RangeOf(param);
  if (const auto drawn = DrawPart(range, height, width, draws)) return *drawn;
  ImagePart part{.height = height, .width = width};
  const double ratio = static_cast<double>(width) / height;
  const auto rounded = [](double side) { return std::max(1, static_cast<int>(std::lround(side))); };
  if (ratio < range.min_ratio) part.height = rounded(width / range.min_ratio);
  if (ratio > range.max_ratio) part.width = rounded(height * range.max_ratio);
  part.top = (height - part.height) / 2;
  part.left = (width - part.width) / 2;
  return part;
}

std::unique_ptr<Augmentation> MakeRandomResizedCrop(const TransformationParameter& param) {
  if (!param.has_random_resized_crop()) return nullptr;
  return std::make_unique<RandomResizedCrop>(param);
}

}  // namespace caffe::data
