// Pooling over the two spatial axes of N,C,H,W tensors.
#pragma once

#include <algorithm>
#include <array>
#include <string>

#include "caffe/export.hpp"
#include "caffe/host_device.hpp"
#include "caffe/ops/op.hpp"
#include "caffe/ops/window.hpp"

namespace caffe::ops {

// Index 0 is height, 1 is width.
struct CAFFE_EXPORT PoolGeometry {
  std::array<int64_t, 2> kernel{}, stride{1, 1}, pad{0, 0};
  bool rounds_down = false;

  // Throws InvalidArgument for options that are out of range.
  void Check() const;
  // Caffe rounds up, then drops a last window that would start in the padding. Throws
  // InvalidArgument if no window is left.
  int64_t OutputSize(int axis, int64_t input) const;
  // True if a byte can represent every position of a window.
  bool fits_byte_mask() const { return kernel[0] * kernel[1] <= 255; }
  std::string ToString() const;

 private:
  Window window(int axis) const { return {kernel[axis], stride[axis], pad[axis]}; }
};

inline constexpr LayoutRule kPoolLayout{
    .inputs = {0}, .outputs = {0, 1}, .prefers_channels_last = true};

// Encoding of the winner of a MaxPool window. As a number: h * W + w in the image, -1 for none. As
// a byte, if the geometry fits_byte_mask(): row * kernel width + column in the window before it is
// clipped, 255 for none.
struct MaskCode {
  PoolGeometry geometry;
  int64_t width;
  bool is_byte;

  MaskCode(const PoolGeometry& geometry, int64_t width, DType mask)
      : geometry(geometry), width(width), is_byte(mask == DType::kUInt8) {}
  CAFFE_HOST_DEVICE int none() const { return is_byte ? 255 : -1; }
  // Encodes position (h, w) of the image for the window of output position (oh, ow).
  CAFFE_HOST_DEVICE int At(int64_t oh, int64_t ow, int64_t h, int64_t w) const {
    if (!is_byte) return static_cast<int>(h * width + w);
    return static_cast<int>((h - Start(0, oh)) * geometry.kernel[1] + w - Start(1, ow));
  }
  // Decodes to h * W + w. `code` must not be none().
  CAFFE_HOST_DEVICE int64_t Index(int64_t oh, int64_t ow, int64_t code) const {
    if (!is_byte) return code;
    return (Start(0, oh) + code / geometry.kernel[1]) * width + Start(1, ow) +
           code % geometry.kernel[1];
  }

 private:
  CAFFE_HOST_DEVICE int64_t Start(int axis, int64_t output) const {
    return output * geometry.stride[axis] - geometry.pad[axis];
  }
};

// (x) -> (y[, mask]):  maximum of each window, clipped to the image; of equal values the first in
// row-major order wins. mask has numbers or bytes (MaskCode), none() for an empty window.
struct CAFFE_EXPORT MaxPool {
  static constexpr std::string_view kName = "MaxPool";
  static constexpr OperandSet kItemInputs = {0};
  PoolGeometry geometry;
  std::string Attributes() const { return geometry.ToString(); }
  LayoutRule layout_rule() const { return kPoolLayout; }
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc> outputs) const;
};

// (mask, dy) -> (dx):  adds dy at the winner's position.
struct MaxPoolGrad {
  static constexpr std::string_view kName = "MaxPoolGrad";
  PoolGeometry geometry;
  std::string Attributes() const { return geometry.ToString(); }
  LayoutRule layout_rule() const {
    return {.inputs = {0, 1}, .outputs = {0}, .prefers_channels_last = true};
  }
};

// (x) -> (y):  sum of each window divided by its size. As in Caffe, the size counts padding up to
// `pad` beyond the image's far edge, but not the part of the window beyond that.
struct CAFFE_EXPORT AvePool {
  static constexpr std::string_view kName = "AvePool";
  static constexpr OperandSet kItemInputs = {0};
  PoolGeometry geometry;
  std::string Attributes() const { return geometry.ToString(); }
  LayoutRule layout_rule() const { return kPoolLayout; }
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc> outputs) const;
};

// (dy) -> (dx)
struct AvePoolGrad {
  static constexpr std::string_view kName = "AvePoolGrad";
  PoolGeometry geometry;
  std::string Attributes() const { return geometry.ToString(); }
  LayoutRule layout_rule() const { return kPoolLayout; }
};

// (x) -> (y, mask):  one element of each window (all must be >= 0), drawn with probability
// proportional to its value (Zeiler and Fergus 2013). mask as in MaxPool, with numbers, so that
// MaxPoolGrad serves here, too. Output i in row-major order draws number i of `stream`.
struct StochasticPool {
  static constexpr std::string_view kName = "StochasticPool";
  PoolGeometry geometry;
  uint64_t stream = 0;
  std::string Attributes() const { return geometry.ToString(); }
};

// (x) -> (y):  the expectation of StochasticPool: sum of x^2 / sum of x; 0 for a window of zeros.
struct StochasticPoolMean {
  static constexpr std::string_view kName = "StochasticPoolMean";
  PoolGeometry geometry;
  std::string Attributes() const { return geometry.ToString(); }
};

// (x, y, dy) -> (dx):  dx = dy * (2 x - y) / sum of x, summed over windows.
struct StochasticPoolMeanGrad {
  static constexpr std::string_view kName = "StochasticPoolMeanGrad";
  PoolGeometry geometry;
  std::string Attributes() const { return geometry.ToString(); }
};

// The part of one axis that an output position's window covers.
struct PoolWindow {
  int64_t begin = 0, end = 0;  // clipped to the image
  int64_t size = 1;            // clipped to image plus padding, >= 1; the divisor of AVE
};

CAFFE_HOST_DEVICE inline PoolWindow WindowAt(const PoolGeometry& geometry, int axis, int64_t input,
                                             int64_t output) {
  const int64_t start = output * geometry.stride[axis] - geometry.pad[axis];
  const int64_t stop = std::min(start + geometry.kernel[axis], input + geometry.pad[axis]);
  return {std::max<int64_t>(start, 0), std::min(stop, input), std::max<int64_t>(stop - start, 1)};
}

}  // namespace caffe::ops
