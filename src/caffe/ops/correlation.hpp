// Compares patches of two images at displacements (Dosovitskiy et al. 2015, "FlowNet").
#pragma once

#include <string>

#include "caffe/ops/each_element.hpp"

namespace caffe::ops {

// Along an axis (0: down, 1: across) both images are padded with `pad` black pixels at each end.
// The result's pixel (y, x) compares patches whose first pixel is at stride_1 * (y, x) + reach in
// the padded first image. Its channels are displacements of the second image's patch: `count` down
// times `count` across, in steps of stride_2, beginning with step `first`.
struct CorrelationOp {
  struct Axis {
    int pad = 0, reach = 0, first = 0, count = 1;
  };

  int channels = 0, height = 0, width = 0;  // of both images
  int rows = 0, columns = 0;                // of the result
  int kernel = 1, stride_1 = 1, stride_2 = 1;
  Axis axes[2];
  bool subtracts = false;  // sums of absolute differences instead of products

  std::string Attributes() const {
    return StrCat("kernel ", kernel, ", displacements ", axes[0].count, " x ", axes[1].count,
                  subtracts ? ", differences" : "");
  }
  CAFFE_HOST_DEVICE inline int displacements() const { return axes[0].count * axes[1].count; }
  CAFFE_HOST_DEVICE inline int Down(int displacement) const {
    return (displacement / axes[1].count + axes[0].first) * stride_2;
  }
  CAFFE_HOST_DEVICE inline int Across(int displacement) const {
    return (displacement % axes[1].count + axes[1].first) * stride_2;
  }
  CAFFE_HOST_DEVICE inline int patch() const { return kernel * kernel * channels; }
  // An element of an image; 0 outside of it.
  template <typename A, typename Image>
  CAFFE_HOST_DEVICE inline A At(const Image& image, int plane, int h, int w) const {
    if (h < 0 || h >= height || w < 0 || w >= width) return A(0);
    return image[(plane * height + h) * width + w];
  }
  // The first image's pixel at which the first patch along an axis begins.
  CAFFE_HOST_DEVICE inline int Begin(int axis) const { return axes[axis].reach - axes[axis].pad; }
  // Row or column of the result whose patch has its pixel `k` at `pixel` of the first image; -1 if
  // there is none.
  CAFFE_HOST_DEVICE inline int ResultOf(int axis, int pixel, int k) const {
    const int at = pixel - Begin(axis) - k, extent = axis == 0 ? rows : columns;
    return at >= 0 && at % stride_1 == 0 && at / stride_1 < extent ? at / stride_1 : -1;
  }
};

// (a, b) -> (y):  the sum over a patch and its channels, divided by their number.
struct Correlation : CorrelationOp {
  static constexpr std::string_view kName = "Correlation";
  static constexpr int kInputs = 2;

  template <typename A, typename X>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const X& a, const X& b) const {
    int rest = static_cast<int>(i);
    const int column = rest % columns;
    rest /= columns;
    const int row = rest % rows;
    rest /= rows;
    const int displacement = rest % displacements(), item = rest / displacements();
    const int first_row = row * stride_1 + Begin(0), first_column = column * stride_1 + Begin(1);
    const int down = Down(displacement), across = Across(displacement);
    A sum = 0;
    for (int h = first_row; h < first_row + kernel; ++h) {
      for (int w = first_column; w < first_column + kernel; ++w) {
        for (int plane = item * channels; plane < (item + 1) * channels; ++plane) {
          const A of_a = At<A>(a, plane, h, w), of_b = At<A>(b, plane, h + down, w + across);
          sum += !subtracts ? of_a * of_b : of_a > of_b ? of_a - of_b : of_b - of_a;
        }
      }
    }
    return sum / A(patch());
  }
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc> outputs) const {
    return 2.0 * patch() * static_cast<double>(outputs[0].count());
  }
};

// (a, b, dy) -> (dx):  the gradient of a, or of b. The difference of equal elements has slope 0.
struct CorrelationGrad : CorrelationOp {
  static constexpr std::string_view kName = "CorrelationGrad";
  static constexpr int kInputs = 3;
  bool of_second = false;

  CorrelationGrad(const CorrelationOp& options, bool of_second)
      : CorrelationOp(options), of_second(of_second) {}

  template <typename A, typename X>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const X& a, const X& b, const X& dy) const {
    const int w = static_cast<int>(i) % width, h = static_cast<int>(i) / width % height;
    const int plane = static_cast<int>(i) / (width * height), item = plane / channels;
    A sum = 0;
    for (int displacement = 0; displacement < displacements(); ++displacement) {
      const int down = Down(displacement), across = Across(displacement);
      // Position of the pair's pixel in the first image.
      const int pair_row = of_second ? h - down : h, pair_column = of_second ? w - across : w;
      const A slope = of_second
                          ? Slope(At<A>(b, plane, h, w), At<A>(a, plane, pair_row, pair_column))
                          : Slope(At<A>(a, plane, h, w), At<A>(b, plane, h + down, w + across));
      if (slope == 0) continue;
      const int first = (item * displacements() + displacement) * rows * columns;
      sum += slope * SumOfPatches<A>(dy, first, pair_row, pair_column);
    }
    return sum / A(patch());
  }
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc> outputs) const {
    return 2.0 * kernel * kernel * displacements() * static_cast<double>(outputs[0].count());
  }

 private:
  template <typename A>
  CAFFE_HOST_DEVICE inline A Slope(A own, A other) const {
    return !subtracts ? other : own > other ? A(1) : own < other ? A(-1) : A(0);
  }
  // Sum of dy over the result's pixels whose patches contain pixel (h, w) of the first image.
  template <typename A, typename Dy>
  CAFFE_HOST_DEVICE inline A SumOfPatches(const Dy& dy, int first, int h, int w) const {
    A sum = 0;
    for (int j = 0; j < kernel; ++j) {
      const int row = ResultOf(0, h, j);
      if (row < 0) continue;
      for (int k = 0; k < kernel; ++k) {
        const int column = ResultOf(1, w, k);
        if (column >= 0) sum += dy[first + row * columns + column];
      }
    }
    return sum;
  }
};

}  // namespace caffe::ops
