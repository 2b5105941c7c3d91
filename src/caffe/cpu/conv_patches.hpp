// Computes which input pixels a 2-D convolution of channels-last images reads.
#pragma once

#include <array>
#include <cstdint>

#include "caffe/ops/conv.hpp"

namespace caffe::cpu {

// The sizes of such a convolution. A tap is a position of the kernel; pixels are counted over all
// images.
struct ConvPatches {
  ConvPatches(const ops::ConvGeometry& geometry, const Shape& x, const Shape& y)
      : group(geometry.group),
        channels(x[1]),
        height(x[2]),
        width(x[3]),
        outputs(y[1]),
        out_width(y[3]),
        image_pixels(y[2] * y[3]),
        pixels(y[0] * image_pixels),
        kernel_width(geometry.kernel[1]),
        taps(geometry.kernel[0] * kernel_width),
        stride{geometry.stride[0], geometry.stride[1]},
        pad{geometry.pad[0], geometry.pad[1]},
        dilation{geometry.dilation[0], geometry.dilation[1]} {}

  int64_t group_channels() const { return channels / group; }
  int64_t group_outputs() const { return outputs / group; }
  // The input pixel that a tap of an output pixel reads; -1 in the padding.
  int64_t Source(int64_t pixel, int64_t tap) const {
    const int64_t image = pixel / image_pixels, place = pixel % image_pixels;
    const int64_t row = place / out_width * stride[0] - pad[0] + tap / kernel_width * dilation[0];
    const int64_t column =
        place % out_width * stride[1] - pad[1] + tap % kernel_width * dilation[1];
    if (row < 0 || row >= height || column < 0 || column >= width) return -1;
    return (image * height + row) * width + column;
  }

  int64_t group, channels, height, width, outputs, out_width, image_pixels, pixels;
  int64_t kernel_width, taps;
  std::array<int64_t, 2> stride, pad, dilation;
};

}  // namespace caffe::cpu
