// Patches of two images compared at displacements (Dosovitskiy et al. 2015, "FlowNet").
#pragma once

#include <string>

#include "caffe/ops/each_element.hpp"

namespace caffe::ops {

// Images are `pad` pixels wider on each side, black there. The result's pixel (y, x) is about the
// patches whose first pixel is at stride_1 (y, x) + reach of the wider first image; its channels
// are the displacements of the second one's, stride_2 (-radius..radius) down, then across.
struct CorrelationOp {
  int channels = 0, height = 0, width = 0;  // of both images
  int rows = 0, columns = 0;                // of the result
  int pad = 0, kernel = 1, reach = 0, stride_1 = 1, stride_2 = 1;
  bool subtracts = false;  // sums of absolute differences instead of products

  std::string Attributes() const {
    return StrCat("kernel ", kernel, ", displacements to ", reach,
                  subtracts ? ", differences" : "");
  }
  CAFFE_HOST_DEVICE inline int radius() const { return reach / stride_2; }
  CAFFE_HOST_DEVICE inline int side() const { return 2 * radius() + 1; }
  CAFFE_HOST_DEVICE inline int displacements() const { return side() * side(); }
  CAFFE_HOST_DEVICE inline int Down(int displacement) const {
    return (displacement / side() - radius()) * stride_2;
  }
  CAFFE_HOST_DEVICE inline int Across(int displacement) const {
    return (displacement % side() - radius()) * stride_2;
  }
  CAFFE_HOST_DEVICE inline int patch() const { return kernel * kernel * channels; }
  // An element of an image; 0 outside of it.
  template <typename A, typename Image>
  CAFFE_HOST_DEVICE inline A At(const Image& image, int plane, int h, int w) const {
    if (h < 0 || h >= height || w < 0 || w >= width) return A(0);
    return image[(plane * height + h) * width + w];
  }
  // Which of the result's rows or columns, -1 for none, has a patch whose pixel `k` is at `pixel`
  // of the first image.
  CAFFE_HOST_DEVICE inline int ResultOf(int pixel, int k, int extent) const {
    const int at = pixel + pad - reach - k;
    return at >= 0 && at % stride_1 == 0 && at / stride_1 < extent ? at / stride_1 : -1;
  }
};

// (a, b) -> (y):  sums over a patch and its channels / their number.
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
    const int first_row = row * stride_1 + reach - pad,
              first_column = column * stride_1 + reach - pad;
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

// (a, b, dy) -> (dx) of a, or of b. The difference of equal elements has no slope.
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
      // Where the first image has its pixel of the pair, and the other one.
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
  // Of the result's pixels whose patches hold a pixel of the first image.
  template <typename A, typename Dy>
  CAFFE_HOST_DEVICE inline A SumOfPatches(const Dy& dy, int first, int h, int w) const {
    A sum = 0;
    for (int j = 0; j < kernel; ++j) {
      const int row = ResultOf(h, j, rows);
      if (row < 0) continue;
      for (int k = 0; k < kernel; ++k) {
        const int column = ResultOf(w, k, columns);
        if (column >= 0) sum += dy[first + row * columns + column];
      }
    }
    return sum;
  }
};

}  // namespace caffe::ops
