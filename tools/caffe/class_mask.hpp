// Turns the scores of a segmentation net into a class for each pixel of an image.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/caffe/image_feed.hpp"

namespace caffe::tools {

// The class of pixels that the net did not see.
inline constexpr uint8_t kNoClass = 255;

// Scores of one image; `values` points to the first class's plane.
struct ClassScores {
  const float* values = nullptr;  // classes x height x width
  int classes = 0, height = 0, width = 0;
};

// The class with the highest score for each pixel of the image. Scores are interpolated bilinearly
// if the net's resolution differs. Ties go to the lower class. At most 255 classes.
std::vector<uint8_t> ClassMask(const ClassScores& scores, const data::ImageExtents& image,
                               const data::SeenPart& seen);

// Returns the image in gray, with each pixel tinted by its class; pixels of class 0 and kNoClass
// are unchanged. `image` has 1 or 3 channels, the result has 3.
data::Image WithMask(const data::Image& image, const std::vector<uint8_t>& mask);

}  // namespace caffe::tools
