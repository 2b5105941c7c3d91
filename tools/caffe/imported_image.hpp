// An image file on its way into a database.
#pragma once

#include <string>

#include "caffe/data/parsers/image_codec.hpp"

namespace caffe::tools {

struct ImportOptions {
  bool gray = false;          // one channel; without it three
  int height = 0, width = 0;  // to resize to; 0: keep
};

struct ImportedImage {
  std::string error;  // why there is no image; empty where there is one
  std::string format;
  data::ImageExtents original;
  data::Image pixels;  // as stored
  std::string record;  // a serialised Datum, with a compressed image
};

// The file's bytes stay as they are unless the pixels are changed or few programs read the format.
// Changed ones are JPEG where the file was, else PNG. Never throws.
ImportedImage ImportImage(const std::string& path, int label, const ImportOptions& options);

}  // namespace caffe::tools
