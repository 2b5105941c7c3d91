// The images of a detection test set: their names and sizes, and boxes in their pixels.
#pragma once

#include <string>
#include <vector>

#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Of an image, in pixels.
struct NamedImageSize {
  std::string name;
  int height = 0, width = 0;
};

// Lines of "name height width", as get_image_size writes them; at least one. Throws IoError, or
// InvalidArgument naming the line.
std::vector<NamedImageSize> ReadImageSizes(const std::string& path);

struct ImageBox {
  double xmin = 0, ymin = 0, xmax = 0, ymax = 0;
};

// From parts of the net's input (0 to 1) to pixels of the original image, at its borders cut off.
// `resize` says how the input was made of the image: FIT_LARGE_SIZE_AND_PAD's padding is taken
// back, FIT_SMALL_SIZE's boxes are parts of height_scale x width_scale where these are given.
ImageBox InPixels(const ImageBox& parts, const NamedImageSize& size, const ResizeParameter& resize);

}  // namespace caffe
