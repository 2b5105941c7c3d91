#include "caffe/data/transformers/affine.hpp"

#include <cmath>
#include <numbers>
#include <opencv2/imgproc.hpp>

#include "caffe/data/transformers/mean_image.hpp"

namespace caffe::data {

cv::Scalar MeanColor(const TransformationParameter& param) {
  const std::vector<float> means = ChannelMeans(param);
  cv::Scalar color;
  for (size_t channel = 0; channel < 4 && !means.empty(); ++channel) {
    if (means.size() == 1) color[static_cast<int>(channel)] = means[0];
    if (means.size() > 1 && channel < means.size())
      color[static_cast<int>(channel)] = means[channel];
  }
  return color;
}

void ApplyAffine(const Affine& affine, const cv::Scalar& outside, cv::Mat* image) {
  const cv::Matx23d from(affine.a, affine.b, affine.c, affine.d, affine.e, affine.f);
  cv::Mat moved;
  cv::warpAffine(*image, moved, from, image->size(), cv::INTER_LINEAR | cv::WARP_INVERSE_MAP,
                 cv::BORDER_CONSTANT, outside);
  *image = moved;
}

void Turn(double degrees, const cv::Scalar& outside, cv::Mat* image) {
  const double angle = degrees / 180 * std::numbers::pi;
  const double cosine = std::cos(angle), sine = std::sin(angle);
  const double x = (image->cols - 1) / 2.0, y = (image->rows - 1) / 2.0;  // the centre
  ApplyAffine({cosine, -sine, x - cosine * x + sine * y,                  //
               sine, cosine, y - sine * x - cosine * y},
              outside, image);
}

}  // namespace caffe::data
