// Rotates, shears and translates images. Pixels are interpolated; the area outside the image has
// one colour.
#pragma once

#include <opencv2/core.hpp>

#include "caffe/proto/caffe.pb.h"

namespace caffe::data {

// The colour that becomes 0 when the mean is subtracted, except for rounding to bytes: mean_value,
// or the mean of each channel of mean_file; black if there is neither.
cv::Scalar MeanColor(const TransformationParameter& param);

// Pixel (x, y), counted in columns and rows, takes the colour of the original image at (a x + b y +
// c, d x + e y + f).
struct Affine {
  double a = 1, b = 0, c = 0;
  double d = 0, e = 1, f = 0;
};
void ApplyAffine(const Affine& affine, const cv::Scalar& outside, cv::Mat* image);

// Rotates the image about its centre, counter-clockwise; its size does not change.
void Turn(double degrees, const cv::Scalar& outside, cv::Mat* image);

}  // namespace caffe::data
