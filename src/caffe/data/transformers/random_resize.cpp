#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "caffe/data/transformers/augmentation.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

int OpenCvAlgorithm(TransformationParameter::InterpolationAlgo algorithm) {
  switch (algorithm) {
    case TransformationParameter::INTER_NEAREST:
      return cv::INTER_NEAREST;
    case TransformationParameter::INTER_LINEAR:
      return cv::INTER_LINEAR;
    case TransformationParameter::INTER_CUBIC:
      return cv::INTER_CUBIC;
    case TransformationParameter::INTER_AREA:
      return cv::INTER_AREA;
  }
  throw InvalidArgument("transform_param: unknown interpolation");
}

// Resizes the shorter side to a random length, the longer one to a random multiple of it, then
// stretches both at random.
class RandomResize final : public Augmentation {
 public:
  explicit RandomResize(const TransformationParameter& param) : param_(param) {
    const auto check = [](const char* name, double lower, double upper) {
      Require(lower <= upper, "transform_param: ", name, "_lower is ", lower, " and ", name,
              "_upper ", upper, "; the lower bound must not be above the upper one");
    };
    check("img_rand_resize", param.img_rand_resize_lower(), param.img_rand_resize_upper());
    check("rand_resize_ratio", param.rand_resize_ratio_lower(), param.rand_resize_ratio_upper());
    check("vertical_stretch", param.vertical_stretch_lower(), param.vertical_stretch_upper());
    check("horizontal_stretch", param.horizontal_stretch_lower(), param.horizontal_stretch_upper());
    Require(param.vertical_stretch_lower() > 0 && param.horizontal_stretch_lower() > 0,
            "transform_param: vertical_stretch_lower is ", param.vertical_stretch_lower(),
            " and horizontal_stretch_lower ", param.horizontal_stretch_lower(),
            "; both must be positive");
  }

  void Apply(Draws& draws, Picture* picture) const override {
    const int rows = picture->image.rows, columns = picture->image.cols;
    double shorter = std::min(rows, columns), longer = std::max(rows, columns);
    bool is_tall = rows > columns;
    const uint32_t lower = param_.img_rand_resize_lower(), upper = param_.img_rand_resize_upper();
    if (lower > 0 && upper > 0) {
      const double length = lower + draws.Below(static_cast<int>(upper - lower) + 1);
      longer *= length / shorter;
      shorter = length;
    }
    if (param_.rand_resize_ratio_lower() >= 1 && param_.rand_resize_ratio_upper() > 1) {
      longer = shorter *
               draws.Uniform(param_.rand_resize_ratio_lower(), param_.rand_resize_ratio_upper());
      if (rows == columns) is_tall = draws.Chance(0.5f);
    }
    const auto stretched = [&](double side, float low, float high, int source) {
      int pixels = static_cast<int>(std::lround(side * draws.Uniform(low, high)));
      pixels = std::max({pixels, static_cast<int>(param_.crop_size()), 1});
      return param_.allow_upscale() ? pixels : std::min(pixels, source);
    };
    const int height = stretched(is_tall ? longer : shorter, param_.vertical_stretch_lower(),
                                 param_.vertical_stretch_upper(), rows);
    const int width = stretched(is_tall ? shorter : longer, param_.horizontal_stretch_lower(),
                                param_.horizontal_stretch_upper(), columns);
    if (height == rows && width == columns) return;
    const bool shrinks = int64_t{height} * width < int64_t{rows} * columns;
    cv::Mat resized;
    cv::resize(picture->image, resized, cv::Size(width, height), 0, 0,
               OpenCvAlgorithm(shrinks ? param_.interpolation_algo_down()
                                       : param_.interpolation_algo_up()));
    picture->image = resized;
  }

 private:
  const TransformationParameter param_;
};

}  // namespace

bool ResizesAtRandom(const TransformationParameter& param) {
  return param.img_rand_resize_lower() > 0 || param.img_rand_resize_upper() > 0 ||
         param.rand_resize_ratio_lower() > 0 || param.rand_resize_ratio_upper() > 0 ||
         param.vertical_stretch_lower() != 1 || param.vertical_stretch_upper() != 1 ||
         param.horizontal_stretch_lower() != 1 || param.horizontal_stretch_upper() != 1;
}

std::unique_ptr<Augmentation> MakeRandomResize(const TransformationParameter& param) {
  return ResizesAtRandom(param) ? std::make_unique<RandomResize>(param) : nullptr;
}

}  // namespace caffe::data
