// The operations of RandAugment (Cubuk et al. 2020, arXiv 1909.13719), as in torchvision for PIL
// images.
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

// The strength of an operation at a magnitude of 0 to 30, for an image of height x width pixels:
//   shear       its tangent, up to 0.3
//   translate   pixels, up to 150 / 331 of the width or height
//   rotate      degrees, up to 30
//   brightness, colour, contrast, sharpness   added to the factor 1, up to 0.9
//   posterize   remaining bits, from 8 down to 4
//   solarize    the lowest value that is inverted, from 255 down to 0
// 0 for the others.
double StrengthOf(RandOperation operation, int magnitude, int height, int width);
// True if the sign of the strength is drawn at random.
bool HasSign(RandOperation operation);

// `image` has 1 channel, or 3 in the order BGR. Its size does not change; areas outside the
// original have the colour `outside`. The original pixels are not overwritten, because they may be
// shared.
void ApplyRandOperation(RandOperation operation, double strength, const cv::Scalar& outside,
                        cv::Mat* image);

}  // namespace caffe::data
