// Convolution in any number of spatial dimensions, with groups and dilation.
#pragma once

#include <string>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/ops/epilogue.hpp"
#include "caffe/ops/op.hpp"
#include "caffe/ops/window.hpp"

namespace caffe::ops {

// Per spatial axis, outermost first.
struct CAFFE_EXPORT ConvGeometry {
  std::vector<int64_t> kernel, stride, pad, dilation;
  int64_t group = 1;

  int spatial_axes() const { return static_cast<int>(kernel.size()); }
  Window window(int axis) const { return {kernel[axis], stride[axis], pad[axis], dilation[axis]}; }
  // Positions from the kernel's first to its last, with the gaps of dilation.
  int64_t Span(int axis) const { return window(axis).Span(); }
  // Whether pixels lie between two windows that neither reads, though they are more than a pixel
  // each or padded. Few write such convolutions, and few of a vendor's kernels are tried with them.
  bool LeavesOutPixels() const;
  // Throws InvalidArgument for options out of their range.
  void Check() const;
  // (padded input - what the kernel spans) / stride + 1, divided as whole numbers in C++ as the
  // originals do: an input that lacks less than a stride gives one output, zeros beyond its end.
  // Throws InvalidArgument when the kernel lacks more.
  int64_t OutputSize(int axis, int64_t input) const;
  // Of a transposed convolution.
  int64_t TransposedOutputSize(int axis, int64_t input) const;
  std::string ToString() const;
};

// What the user asks of the choice among a vendor's algorithms (docs/gpu.md); kernels without such
// a choice do not look at it.
struct ConvChoice {
  int algorithm = -1;       // the number of one; -1: any
  int math = -1;            // 0: none that uses tensor cores; -1 and 1: any
  bool is_measured = true;  // false: the vendor's first guess, untimed
};

// Shapes: x (N,C,D...), w (K,C/group,kernel...), b (K), y (N,K,D'...). Correlation: the kernel
// is not flipped. Multiply-adds of one pass: count(y) * count(w) / K.
// (x, w[, bias]) -> (y):  y = x * w + bias, then the epilogue. w of a quantised x is float, and is
// quantised for each output channel, its largest weight as 127.
struct CAFFE_EXPORT Conv {
  static constexpr std::string_view kName = "Conv";
  static constexpr NumericRule kNumericRule = NumericRule::kMath;
  enum Input { kX, kW, kBias };
  ConvGeometry geometry;
  ConvChoice choice = {};
  Epilogue epilogue = {};

  std::string Attributes() const { return geometry.ToString() + EpilogueText(epilogue); }
  LayoutRule layout_rule() const {
    return {
        .inputs = WithEpilogueData({kX}, epilogue), .outputs = {0}, .prefers_channels_last = true};
  }
  double Flops(std::span<const TensorDesc> inputs, std::span<const TensorDesc> outputs) const;
};

// (dy, w) -> (dx):  dx, then the epilogue.
struct CAFFE_EXPORT ConvGradData {
  static constexpr std::string_view kName = "ConvGradData";
  static constexpr NumericRule kNumericRule = NumericRule::kMath;
  enum Input { kDy, kW };
  ConvGeometry geometry;
  ConvChoice choice = {};
  Epilogue epilogue = {};

  std::string Attributes() const { return geometry.ToString() + EpilogueText(epilogue); }
  LayoutRule layout_rule() const {
    return {
        .inputs = WithEpilogueData({kDy}, epilogue), .outputs = {0}, .prefers_channels_last = true};
  }
  double Flops(std::span<const TensorDesc> inputs, std::span<const TensorDesc> outputs) const;
};

// (x, dy) -> (dw[, dbias])
struct CAFFE_EXPORT ConvGradWeights {
  static constexpr std::string_view kName = "ConvGradWeights";
  static constexpr NumericRule kNumericRule = NumericRule::kMath;
  enum Input { kX, kDy };
  enum Output { kDw, kDbias };
  ConvGeometry geometry;
  ConvChoice choice = {};

  std::string Attributes() const { return geometry.ToString(); }
  LayoutRule layout_rule() const { return {.inputs = {kX, kDy}, .prefers_channels_last = true}; }
  double Flops(std::span<const TensorDesc> inputs, std::span<const TensorDesc> outputs) const;
};

}  // namespace caffe::ops
