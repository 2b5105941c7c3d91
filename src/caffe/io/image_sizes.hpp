// The images of a detection test set: names and sizes, and conversion of boxes to pixels.
#pragma once

#include <string>
#include <vector>

#include "caffe/proto/caffe.pb.h"

namespace caffe {

// An image's name, and its size in pixels.
struct NamedImageSize {
  std::string name;
  int height = 0, width = 0;
};

// Reads lines of "name height width", as written by get_image_size; at least one. Throws IoError,
// or InvalidArgument naming the line.
std::vector<NamedImageSize> ReadImageSizes(const std::string& path);

struct ImageBox {
  double xmin = 0, ymin = 0, xmax = 0, ymax = 0;
};

// Converts relative coordinates of the net's input (0 to 1) to pixels of the original image,
// clipped to its borders. `resize` tells how the input was created from the image: the padding of
// FIT_LARGE_SIZE_AND_PAD is undone; with FIT_SMALL_SIZE, boxes are relative to height_scale x
// width_scale if these are set.
ImageBox InPixels(const ImageBox& parts, const NamedImageSize& size, const ResizeParameter& resize);

}  // namespace caffe
