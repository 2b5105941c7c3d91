// Compressed images: JPEG through libjpeg-turbo, GIF by gif.hpp, every other format through OpenCV
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

// As cv::imread does, the latter two turn an image upright whose file notes how the camera was held
// (Exif), and kAsStored leaves it. Of samples of 16 bits all three give the upper 8.
enum class ColorMode {
  kAsStored,  // 1 channel for grey images, 3 (BGR) or 4 (BGRA) for colour
  kColor,     // 3 channels, BGR
  kGray,      // 1 channel
};

// Decodes image files one after the other, reusing its memory. One per thread.
class CAFFE_EXPORT ImageDecoder {
 public:
  explicit ImageDecoder(ColorMode mode);
  ~ImageDecoder();
  ImageDecoder(const ImageDecoder&) = delete;
  ImageDecoder& operator=(const ImageDecoder&) = delete;

  // Interleaved bytes, valid until the next call. Throws IoError with the reason.
  ImageView Decode(std::string_view file);
  // What Decode() would give; needs only the header of a JPEG file.
  ImageExtents ReadExtents(std::string_view file);
  // The same for a JPEG file that every decoder of JPEG takes: one scan, whole, of grey or YCbCr
  // pixels of which Decode() drops, repeats and moves none. Nothing for other files, and for broken
  // ones.
  std::optional<ImageExtents> ExtentsOfPlainJpeg(std::string_view file);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Whether the bytes begin as a JPEG file does.
bool IsJpeg(std::string_view file);
// "jpg", "png", "bmp", "gif", "tiff" or "webp" by the file's first bytes; "" for any other.
CAFFE_EXPORT std::string ImageFormatOf(std::string_view file);

// An image that owns its pixels, interleaved.
struct Image {
  ImageExtents extents;
  std::vector<uint8_t> pixels;

  ImageView view() const { return {extents, pixels.data(), nullptr, /*interleaved=*/true}; }
};

CAFFE_EXPORT Image DecodeImage(std::string_view file, ColorMode mode);
// Bilinear. The image is interleaved bytes.
CAFFE_EXPORT Image ResizeImage(const ImageView& image, int height, int width);
// A JPEG file of 1 or 3 channels, with the subsampling (4:2:0) that OpenCV writes with. Quality: 0
// to 100.
std::string EncodeJpegImage(const Image& image, int quality);
// A file of the type that `extension` ("jpg", "png", ...) names.
CAFFE_EXPORT std::string EncodeImage(const Image& image, const std::string& extension);

}  // namespace caffe::data
