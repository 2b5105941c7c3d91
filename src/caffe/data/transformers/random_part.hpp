// A random rectangle of an image, chosen by its relative area and its aspect ratio.
#pragma once

#include <optional>

#include "caffe/data/transformers/draws.hpp"

namespace caffe::data {

// In pixels.
struct ImagePart {
  int top = 0, left = 0, height = 0, width = 0;
  bool operator==(const ImagePart&) const = default;
};

struct PartRange {
  float min_area, max_area;    // relative to the image's area
  float min_ratio, max_ratio;  // width / height
};

// Throws InvalidArgument, naming `message`, unless 0 < min_area <= max_area <= 1 and
// 0 < min_ratio <= max_ratio.
void CheckPartRange(const char* message, const PartRange& range);

// Draws area (uniform) and ratio (log-uniform) up to ten times, until the rectangle fits into the
// image, then its position, as in torchvision's RandomResizedCrop and RandomErasing. Empty if none
// of the ten fits.
std::optional<ImagePart> DrawPart(const PartRange& range, int height, int width, Draws& draws);

}  // namespace caffe::data
