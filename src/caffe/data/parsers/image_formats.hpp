// Image formats besides JPEG: a module that is loaded for the first such image.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "caffe/data/parsers/draw_boxes.hpp"
#include "caffe/data/parsers/image_codec.hpp"

namespace caffe::data {

// PNG, BMP, TIFF and so on. They depend on many libraries (a hundred on Debian) that are seldom
// needed, so libcaffe does not link with them.
class ImageFormats {
 public:
  virtual ~ImageFormats() = default;

  // Decodes into `pixels`, interleaved bytes, as they are stored: only TIFF is turned upright.
  // Throws IoError with the reason.
  virtual ImageExtents Decode(std::string_view file, ColorMode mode,
                              std::vector<uint8_t>* pixels) const = 0;
  // Returns a file of the type that `extension` names; empty if the type is unknown.
  virtual std::string Encode(const Image& image, const std::string& extension) const = 0;
  virtual void Draw(const std::vector<LabelledBox>& boxes, Image* image) const = 0;

  // Throws Unsupported, naming what is missing, if the module or its libraries cannot be loaded.
  static const ImageFormats& Get();
};

}  // namespace caffe::data
