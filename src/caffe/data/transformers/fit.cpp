#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "caffe/data/transformers/augmentation.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

int OpenCvAlgorithm(int mode) {
  switch (mode) {
    case ResizeParameter::AREA:
      return cv::INTER_AREA;
    case ResizeParameter::NEAREST:
      return cv::INTER_NEAREST;
    case ResizeParameter::CUBIC:
      return cv::INTER_CUBIC;
    case ResizeParameter::LANCZOS4:
      return cv::INTER_LANCZOS4;
    default:
      return cv::INTER_LINEAR;
  }
}

int OpenCvBorder(ResizeParameter::Pad_mode mode) {
  switch (mode) {
    case ResizeParameter::MIRRORED:
      return cv::BORDER_REFLECT_101;
    case ResizeParameter::REPEAT_NEAREST:
      return cv::BORDER_REPLICATE;
    default:
      return cv::BORDER_CONSTANT;
  }
}

class Fit final : public Augmentation {
 public:
  explicit Fit(const ResizeParameter& param) : param_(param) {
    Require(param.height() > 0 && param.width() > 0, "resize_param: height is ", param.height(),
            " and width ", param.width(), "; give both, in pixels");
    Require(param.pad_value_size() <= 4, "resize_param: ", param.pad_value_size(),
            " pad_value entries; give none, one, or one per channel");
  }

  void Apply(Draws& draws, Picture* picture) const override {
    const int algorithm =
        param_.interp_mode_size() == 0
            ? cv::INTER_LINEAR
            : OpenCvAlgorithm(param_.interp_mode(draws.Below(param_.interp_mode_size())));
    const int height = static_cast<int>(param_.height()), width = static_cast<int>(param_.width());
    switch (param_.resize_mode()) {
      case ResizeParameter::WARP:
        return Resize(height, width, algorithm, &picture->image);
      case ResizeParameter::FIT_SMALL_SIZE: {
        const double factor = std::max(static_cast<double>(height) / picture->image.rows,
                                       static_cast<double>(width) / picture->image.cols);
        return ResizeBy(factor, algorithm, &picture->image);
      }
      case ResizeParameter::FIT_LARGE_SIZE_AND_PAD: {
        const double factor = std::min(static_cast<double>(height) / picture->image.rows,
                                       static_cast<double>(width) / picture->image.cols);
        ResizeBy(factor, algorithm, &picture->image);
        return Pad(height, width, picture);
      }
    }
  }

 private:
  static void Resize(int height, int width, int algorithm, cv::Mat* image) {
    if (image->rows == height && image->cols == width) return;
    cv::Mat resized;
    cv::resize(*image, resized, cv::Size(width, height), 0, 0, algorithm);
    *image = resized;
  }

  static void ResizeBy(double factor, int algorithm, cv::Mat* image) {
    const auto scaled = [&](int side) {
      return std::max(1, static_cast<int>(std::lround(side * factor)));
    };
    Resize(scaled(image->rows), scaled(image->cols), algorithm, image);
  }

  // Centres the image, and moves boxes with it.
  void Pad(int height, int width, Picture* picture) const {
    const int rows = picture->image.rows, columns = picture->image.cols;
    const int top = (height - rows) / 2, left = (width - columns) / 2;
    cv::Scalar color;
    for (int channel = 0; channel < 4 && param_.pad_value_size() > 0; ++channel) {
      const int last = param_.pad_value_size() - 1;
      color[channel] = param_.pad_value(std::min(channel, last));
    }
    cv::Mat padded;
    cv::copyMakeBorder(picture->image, padded, top, height - rows - top, left,
                       width - columns - left, OpenCvBorder(param_.pad_mode()), color);
    picture->image = padded;
    const auto moved = [](float part, int size, int offset, int new_size) {
      return (part * static_cast<float>(size) + static_cast<float>(offset)) /
             static_cast<float>(new_size);
    };
    for (ObjectBox& box : picture->boxes) {
      box.xmin = moved(box.xmin, columns, left, width);
      box.xmax = moved(box.xmax, columns, left, width);
      box.ymin = moved(box.ymin, rows, top, height);
      box.ymax = moved(box.ymax, rows, top, height);
    }
  }

  const ResizeParameter param_;
};

}  // namespace

std::unique_ptr<Augmentation> MakeFit(const TransformationParameter& param) {
  if (!param.has_resize_param()) return nullptr;
  return std::make_unique<Fit>(param.resize_param());
}

}  // namespace caffe::data
