// Samples images at positions between their pixels (Jaderberg et al. 2015, "Spatial transformer
// networks").
//
// `at` is N x 2 x H x W: x, then y, of each pixel of the result, in pixels of the image. It is read
// in its stored type, because 16 bits are too few to address a pixel.
#pragma once

#include <cmath>
#include <string>

#include "caffe/ops/each_element.hpp"

namespace caffe::ops {

// The two pixels around a position along one axis, and their weights.
template <typename A>
struct SamplingTaps {
  int low = 0, high = 0;
  A weights[2] = {0, 0};  // of `low` and `high`
  A slopes[2] = {0, 0};   // derivatives of the weights along the axis

  CAFFE_HOST_DEVICE inline int pixel(int k) const { return k == 0 ? low : high; }
};

struct SamplingOp {
  static constexpr OperandSet kExactInputs = {1};

  int channels = 0, height = 0, width = 0;  // of the image
  int rows = 0, columns = 0;                // of the result
  bool is_relative = false;                 // positions are relative to the result's own pixel
  bool repeats_edge = false;  // positions between the last pixel and the edge have the last pixel's
                              // value, others outside are `fill`; if false, outside is black
  float fill = 0;

  std::string Attributes() const {
    return StrCat(height, "x", width, " to ", rows, "x", columns, is_relative ? ", relative" : "");
  }

  // Position in the image that a pixel of the result shows.
  template <typename A, typename At>
  CAFFE_HOST_DEVICE inline A X(const At& at, int item, int pixel) const {
    return at[(2 * item) * rows * columns + pixel] + (is_relative ? A(pixel % columns) : A(0));
  }
  template <typename A, typename At>
  CAFFE_HOST_DEVICE inline A Y(const At& at, int item, int pixel) const {
    return at[(2 * item + 1) * rows * columns + pixel] + (is_relative ? A(pixel / columns) : A(0));
  }
  // True if a position is filled instead of read.
  template <typename A>
  CAFFE_HOST_DEVICE inline bool IsFilled(A x, A y) const {
    return repeats_edge && !(x >= 0 && y >= 0 && x < A(width) && y < A(height));
  }
  template <typename A>
  CAFFE_HOST_DEVICE inline SamplingTaps<A> Taps(A place, int extent) const {
    SamplingTaps<A> taps;
    if (!(place > -1 && place < A(extent))) return taps;
    taps.low = static_cast<int>(std::floor(place));
    taps.high = taps.low + 1;
    const A fraction = place - A(taps.low);
    if (repeats_edge && taps.high >= extent) taps.high = extent - 1;
    if (taps.low >= 0) taps.weights[0] = 1 - fraction, taps.slopes[0] = -1;
    if (taps.high < extent) taps.weights[1] = fraction, taps.slopes[1] = 1;
    if (taps.low < 0) taps.low = 0;
    if (taps.high >= extent) taps.high = extent - 1;
    return taps;
  }
  // Interpolates the image with the given weights of both axes.
  template <typename A, typename Image>
  CAFFE_HOST_DEVICE inline A Read(const Image& image, int plane, const SamplingTaps<A>& down,
                                  const A (&down_weights)[2], const SamplingTaps<A>& across,
                                  const A (&across_weights)[2]) const {
    A sum = 0;
    for (int i = 0; i < 2; ++i) {
      for (int k = 0; k < 2; ++k) {
        const A weight = down_weights[i] * across_weights[k];
        if (weight == 0) continue;
        sum += weight * image[(plane * height + down.pixel(i)) * width + across.pixel(k)];
      }
    }
    return sum;
  }
};

// (image, at) -> (y):  bilinear interpolation.
struct Sample : SamplingOp {
  static constexpr std::string_view kName = "Sample";
  static constexpr int kInputs = 2;

  template <typename A, typename Image, typename At>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const Image& image, const At& at) const {
    const int pixel = static_cast<int>(i) % (rows * columns);
    const int plane = static_cast<int>(i) / (rows * columns);
    const A x = X<A>(at, plane / channels, pixel), y = Y<A>(at, plane / channels, pixel);
    if (IsFilled(x, y)) return A(fill);
    const SamplingTaps<A> down = Taps(y, height), across = Taps(x, width);
    return Read(image, plane, down, down.weights, across, across.weights);
  }
};

// (dy, at) -> (dimage)
struct SampleGradImage : SamplingOp {
  static constexpr std::string_view kName = "SampleGradImage";
};

// (image, at, dy) -> (dat)
struct SampleGradAt : SamplingOp {
  static constexpr std::string_view kName = "SampleGradAt";
  static constexpr int kInputs = 3;

  template <typename A, typename Image, typename At, typename Dy>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const Image& image, const At& at,
                                     const Dy& dy) const {
    const int pixel = static_cast<int>(i) % (rows * columns);
    const int item = static_cast<int>(i) / (rows * columns) / 2;
    const bool is_x = static_cast<int>(i) / (rows * columns) % 2 == 0;
    const A x = X<A>(at, item, pixel), y = Y<A>(at, item, pixel);
    if (IsFilled(x, y)) return A(0);
    const SamplingTaps<A> down = Taps(y, height), across = Taps(x, width);
    A sum = 0;
    for (int plane = item * channels; plane < (item + 1) * channels; ++plane) {
      const A slope = is_x ? Read(image, plane, down, down.weights, across, across.slopes)
                           : Read(image, plane, down, down.slopes, across, across.weights);
      sum += slope * dy[plane * rows * columns + pixel];
    }
    return sum;
  }
};

// Positions of an affine transformation theta, 2 x 3. For a pixel at row r and column c, both -1 at
// the first and 1 beyond the last, y = theta_11 r + theta_12 c + theta_13 and x = theta_21 r +
// theta_22 c + theta_23; y and x go from -1 to 1 in the image.
struct AffineOp {
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;

  int height = 0, width = 0;            // of the image
  int rows = 0, columns = 0;            // of the result
  int learned = 6;                      // elements of theta that are operands, per item
  int operand[6] = {0, 1, 2, 3, 4, 5};  // index among them of each element; -1: fixed
  double fixed[6] = {};

  // Factor of element k of theta at a pixel.
  CAFFE_HOST_DEVICE inline double Base(int k, int pixel) const {
    if (k % 3 == 2) return 1;
    return k % 3 == 0 ? 2.0 * (pixel / columns) / rows - 1 : 2.0 * (pixel % columns) / columns - 1;
  }
  // Pixels per unit of y (elements 0 to 2) or x.
  CAFFE_HOST_DEVICE inline double Pixels(int k) const { return (k < 3 ? height : width) / 2.0; }
};

// (theta) -> (at)
struct AffineGrid : AffineOp {
  static constexpr std::string_view kName = "AffineGrid";
  static constexpr int kInputs = 1;

  template <typename A, typename Theta>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const Theta& theta) const {
    const int pixel = static_cast<int>(i) % (rows * columns);
    const int item = static_cast<int>(i) / (rows * columns) / 2;
    const int first = static_cast<int>(i) / (rows * columns) % 2 == 0 ? 3 : 0;
    A sum = 1;
    for (int k = first; k < first + 3; ++k) {
      const A element = operand[k] < 0 ? A(fixed[k]) : A(theta[item * learned + operand[k]]);
      sum += element * A(Base(k, pixel));
    }
    return sum * A(Pixels(first));
  }
};

// (dat) -> (dtheta)
struct AffineGridGrad : AffineOp {
  static constexpr std::string_view kName = "AffineGridGrad";
  static constexpr int kInputs = 1;

  template <typename A, typename Dat>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const Dat& dat) const {
    const int item = static_cast<int>(i) / learned, wanted = static_cast<int>(i) % learned;
    int k = 0;
    while (operand[k] != wanted) ++k;
    const int pixels = rows * columns, plane = 2 * item + (k < 3 ? 1 : 0);
    A sum = 0;
    for (int pixel = 0; pixel < pixels; ++pixel) {
      sum += dat[plane * pixels + pixel] * A(Base(k, pixel));
    }
    return sum * A(Pixels(k));
  }
};

}  // namespace caffe::ops
