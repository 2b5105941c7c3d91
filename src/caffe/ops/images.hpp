// Converts images from bytes to a net's input.
#pragma once

#include <cstdint>
#include <string>

#include "caffe/host_device.hpp"
#include "caffe/ops/op.hpp"

namespace caffe::ops {

// Crop and orientation of one image, stored as a row of four numbers.
struct ImageWindow {
  static constexpr int64_t kNumbers = 4;
  int64_t top = 0, left = 0;  // first row and column of the crop
  bool mirror = false;        // columns from right to left
  bool interleaved = false;   // the image is H,W,C instead of C,H,W

  template <typename T>
  void Store(T* row) const {
    row[0] = static_cast<T>(top);
    row[1] = static_cast<T>(left);
    row[2] = mirror ? T(1) : T(0);
    row[3] = interleaved ? T(1) : T(0);
  }
};

// (images, windows[, mean]) -> (y):  y = (pixel - mean) * scale, computed in float.
//   images   N,C,H,W bytes, each image in its own order
//   windows  N,4: ImageWindow
//   mean     C, or C,H,W indexed by the source pixel; 0 if absent
//   y        N,C,h,w: the crops
struct TransformImages {
  static constexpr std::string_view kName = "TransformImages";
  static constexpr OperandSet kExactInputs = {1, 2};
  float scale = 1;
  std::string Attributes() const { return StrCat("scale ", scale); }
  LayoutRule layout_rule() const {
    return {.inputs = {}, .outputs = {0}, .prefers_channels_last = true};
  }
};

// Offsets of y's pixel (row, column) in its image and in the mean; y has `width` columns.
struct PixelPlace {
  int64_t byte, byte_stride;  // channel 0, and distance between channels
  int64_t mean;               // channel 0 in planes

  CAFFE_HOST_DEVICE PixelPlace(const ImageWindow& window, int64_t channels, int64_t image_height,
                               int64_t image_width, int64_t width, int64_t row, int64_t column) {
    const int64_t x = window.left + (window.mirror ? width - 1 - column : column);
    mean = (window.top + row) * image_width + x;
    byte = window.interleaved ? mean * channels : mean;
    byte_stride = window.interleaved ? 1 : image_height * image_width;
  }
};

}  // namespace caffe::ops
