// Decodes GIF images without a library: OpenCV supports them only since 4.11.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "caffe/data/parsers/image_view.hpp"

namespace caffe::data {

bool IsGif(std::string_view file);

// Decodes the first frame into `pixels`, interleaved BGR bytes. As with Pillow's convert("RGB"),
// transparent pixels have the colour of their index. Throws IoError with the reason.
ImageExtents DecodeGif(std::string_view file, std::vector<uint8_t>* pixels);

}  // namespace caffe::data
