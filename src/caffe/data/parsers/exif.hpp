// Exif: what a camera has noted in a photograph.
#pragma once

#include <string_view>

#include "caffe/export.hpp"

namespace caffe::data {

// How a JPEG file's pixels have to be turned to stand upright, 1 to 8 as Exif numbers it; 1, as
// they are, where the file notes nothing that can be read, or is no JPEG file.
CAFFE_EXPORT int ExifOrientation(std::string_view file);

}  // namespace caffe::data
