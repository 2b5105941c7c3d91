// Draws boxes on images for inspection.
#pragma once

#include <string>
#include <vector>

#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/export.hpp"

namespace caffe::data {

// Coordinates in pixels from the upper left corner; may extend beyond the image.
struct LabelledBox {
  float left = 0, top = 0, right = 0, bottom = 0;
  std::string text;
  int color = 0;  // boxes with the same number have the same colour
};

// Draws frames with their texts on an image of 1 or 3 channels. Throws Unsupported if the module of
// image formats is missing.
CAFFE_EXPORT void DrawBoxes(const std::vector<LabelledBox>& boxes, Image* image);

}  // namespace caffe::data
