// Converts an image file to a database record.
#pragma once

#include <string>

#include "caffe/data/parsers/image_codec.hpp"

namespace caffe::tools {

struct ImportOptions {
  bool gray = false;          // one channel; without it three
  int height = 0, width = 0;  // new size; 0: keep the image's
};

struct ImportedImage {
  std::string error;  // why the image could not be imported; empty on success
  std::string format;
  data::ImageExtents original;
  data::Image pixels;  // as stored
  std::string record;  // a serialized Datum with a compressed image
};

// Keeps the file's bytes unless the pixels change or few programs read the format. Changed images
// are encoded as JPEG if the file was JPEG, else as PNG. Does not throw, except std::bad_alloc;
// errors are returned in `error`.
ImportedImage ImportImage(const std::string& path, int label, const ImportOptions& options);

}  // namespace caffe::tools
