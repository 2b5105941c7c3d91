// The operations of RandAugment (Cubuk et al. 2020, arXiv 1909.13719), as torchvision has them for
// images of PIL.
#pragma once

#include <opencv2/core.hpp>

namespace caffe::data {

enum class RandOperation {
  kIdentity,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kBrightness,
  kColor,
  kContrast,
  kSharpness,
  kPosterize,
  kSolarize,
  kAutoContrast,
  kEqualize,
};
inline constexpr int kNumRandOperations = 14;
inline constexpr int kMostMagnitude = 30;

// The strength of an operation at a magnitude of 0 to 30, for an image of so many pixels:
//   shear       its tangent, up to 0.3
//   translate   pixels, up to 150 / 331 of the width or height
//   rotate      degrees, up to 30
//   brightness, colour, contrast, sharpness   what is added to the factor 1, up to 0.9
//   posterize   bits that stay, from 8 down to 4
//   solarize    the lowest value that is inverted, from 255 down to 0
// 0 for the others.
double StrengthOf(RandOperation operation, int magnitude, int height, int width);
// Whether the strength's sign is drawn.
bool HasSign(RandOperation operation);

// `image` has 1 channel, or 3 in the order BGR. Its size stays; what comes from outside of it has
// the colour `outside`. The pixels that it refers to are not written, as they may be others'.
void ApplyRandOperation(RandOperation operation, double strength, const cv::Scalar& outside,
                        cv::Mat* image);

}  // namespace caffe::data
