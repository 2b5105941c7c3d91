// GIF images, without a library: OpenCV reads them only since 4.11.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "caffe/data/parsers/image_view.hpp"

namespace caffe::data {

bool IsGif(std::string_view file);

// Decodes the first frame into `pixels`, interleaved bytes: blue, green, red. As Pillow's
// convert("RGB"), transparent pixels have the colour of their place in the table. Throws IoError
// with the reason.
ImageExtents DecodeGif(std::string_view file, std::vector<uint8_t>* pixels);

}  // namespace caffe::data
