// Compressed images: JPEG with libjpeg-turbo, GIF with gif.hpp, all other formats with OpenCV
// (image_formats.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "caffe/data/parsers/image_view.hpp"
#include "caffe/export.hpp"

namespace caffe::data {

// As with cv::imread, kColor and kGray rotate an image upright according to its Exif data, and
// kAsStored does not, except for TIFF. For 16-bit samples, all modes return the upper 8 bits.
enum class ColorMode {
  kAsStored,  // 1 channel for grey images, 3 (BGR) or 4 (BGRA) for colour
  kColor,     // 3 channels, BGR
  kGray,      // 1 channel
};

// Decodes image files one after the other and reuses its memory. One per thread.
class CAFFE_EXPORT ImageDecoder {
 public:
  explicit ImageDecoder(ColorMode mode);
  ~ImageDecoder();
  ImageDecoder(const ImageDecoder&) = delete;
  ImageDecoder& operator=(const ImageDecoder&) = delete;

  // Returns interleaved bytes, valid until the next call. Throws IoError with the reason.
  ImageView Decode(std::string_view file);
  // Extents of the result of Decode(); reads only the header of a JPEG file.
  ImageExtents ReadExtents(std::string_view file);
  // The same for a JPEG file that every JPEG decoder supports: a single scan, complete, with grey
  // or YCbCr pixels that Decode() does not convert or rotate. Empty for all other files and for
  // broken ones.
  std::optional<ImageExtents> ExtentsOfPlainJpeg(std::string_view file);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// True if the bytes start like a JPEG file.
bool IsJpeg(std::string_view file);
// Detects "jpg", "png", "bmp", "gif", "tiff" or "webp" from the file's first bytes; "" for any
// other.
CAFFE_EXPORT std::string ImageFormatOf(std::string_view file);

// An image that owns its interleaved pixels.
struct Image {
  ImageExtents extents;
  std::vector<uint8_t> pixels;

  ImageView view() const { return {extents, pixels.data(), nullptr, /*interleaved=*/true}; }
};

CAFFE_EXPORT Image DecodeImage(std::string_view file, ColorMode mode);
// Bilinear interpolation. The image must have interleaved bytes.
CAFFE_EXPORT Image ResizeImage(const ImageView& image, int height, int width);
// Encodes a JPEG file of 1 or 3 channels with 4:2:0 subsampling, as OpenCV does. Quality: 0 to 100.
std::string EncodeJpegImage(const Image& image, int quality);
// Encodes a file of the type that `extension` ("jpg", "png", ...) names.
CAFFE_EXPORT std::string EncodeImage(const Image& image, const std::string& extension);

}  // namespace caffe::data
