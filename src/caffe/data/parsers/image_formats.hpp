// Image formats besides JPEG: a module that is loaded when the first such image comes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "caffe/data/parsers/draw_boxes.hpp"
#include "caffe/data/parsers/image_codec.hpp"

namespace caffe::data {

// PNG, BMP, TIFF and so on. The libraries behind them are many (a hundred on Debian) and seldom
// needed, so libcaffe does not link with them.
class ImageFormats {
 public:
  virtual ~ImageFormats() = default;

  // Decodes into `pixels`, interleaved bytes. Throws IoError with the reason.
  virtual ImageExtents Decode(std::string_view file, ColorMode mode,
                              std::vector<uint8_t>* pixels) const = 0;
  // A file of the type that `extension` names; empty when there is no such type.
  virtual std::string Encode(const Image& image, const std::string& extension) const = 0;
  virtual void Draw(const std::vector<LabelledBox>& boxes, Image* image) const = 0;

  // Throws Unsupported, naming what is missing, where the module or its libraries are not there.
  static const ImageFormats& Get();
};

}  // namespace caffe::data
