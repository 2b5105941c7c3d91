// Turns, shears and shifts of images. Pixels are interpolated; what lies outside of the image has
// one colour.
#pragma once

#include <opencv2/core.hpp>

#include "caffe/proto/caffe.pb.h"

namespace caffe::data {

// The colour that becomes 0 once the mean is subtracted, but for the rounding to bytes: mean_value,
// or the mean of each channel of mean_file; black without either.
cv::Scalar MeanColor(const TransformationParameter& param);

// Pixel (x, y), counted in columns and rows, takes the color at (a x + b y + c, d x + e y + f) of
// the image that is there.
struct Affine {
  double a = 1, b = 0, c = 0;
  double d = 0, e = 1, f = 0;
};
void ApplyAffine(const Affine& affine, const cv::Scalar& outside, cv::Mat* image);

// Turns the image about its centre, counter-clockwise; its size stays.
void Turn(double degrees, const cv::Scalar& outside, cv::Mat* image);

}  // namespace caffe::data
