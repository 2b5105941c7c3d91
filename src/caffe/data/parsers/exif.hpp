// Exif: metadata that cameras store in photographs.
#pragma once

#include <string_view>

#include "caffe/export.hpp"

namespace caffe::data {

// Returns the Exif orientation of a JPEG, PNG or WebP file, 1 to 8, which tells how to rotate or
// flip its pixels. Returns 1 (unchanged) if it cannot be read, and for files of all other formats;
// TIFF's decoder itself turns the pixels.
CAFFE_EXPORT int ExifOrientation(std::string_view file);

}  // namespace caffe::data
