// A class for each pixel of an image, of the scores of a segmentation net.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/caffe/image_feed.hpp"

namespace caffe::tools {

// What has no class: pixels that the net did not see.
inline constexpr uint8_t kNoClass = 255;

// Of one image, from the first class's plane on.
struct ClassScores {
  const float* values = nullptr;  // classes x height x width
  int classes = 0, height = 0, width = 0;
};

// The likeliest class of each pixel of the image, interpolated bilinearly between the net's pixels
// where there are fewer or more of them; of equal scores the first. At most 255 classes.
std::vector<uint8_t> ClassMask(const ClassScores& scores, const data::ImageExtents& image,
                               const SeenPart& seen);

// The image in grey under the colours of its classes; class 0 and what has no class stay as they
// are. `image` has 1 or 3 channels, the copy has 3.
data::Image WithMask(const data::Image& image, const std::vector<uint8_t>& mask);

}  // namespace caffe::tools
