// Convolution in any number of spatial dimensions, with groups and dilation.
#pragma once

#include <string>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/ops/epilogue.hpp"
#include "caffe/ops/op.hpp"
#include "caffe/ops/window.hpp"

namespace caffe::ops {

// Options per spatial axis, outermost first.
struct CAFFE_EXPORT ConvGeometry {
  std::vector<int64_t> kernel, stride, pad, dilation;
  int64_t group = 1;

  int spatial_axes() const { return static_cast<int>(kernel.size()); }
  Window window(int axis) const { return {kernel[axis], stride[axis], pad[axis], dilation[axis]}; }
  // Extent of the kernel in input positions, including the gaps of dilation.
  int64_t Span(int axis) const { return window(axis).Span(); }
  // True if pixels between two windows are read by neither, although windows are larger than a
  // pixel or padded. Such convolutions are rare, and vendors test few of their kernels with them.
  bool LeavesOutPixels() const;
  // Throws InvalidArgument for options that are out of range.
  void Check() const;
  // (padded input - Span()) / stride + 1, with the integer division of C++ as in Caffe: an input
  // that is too small by less than a stride gives one output, with zeros beyond its end. Throws
  // InvalidArgument if the input is smaller than that.
  int64_t OutputSize(int axis, int64_t input) const;
  // The same for a transposed convolution.
  int64_t TransposedOutputSize(int axis, int64_t input) const;
  std::string ToString() const;
};

// The user's constraints on the choice among a vendor's algorithms (docs/gpu.md); ignored by
// kernels without such a choice.
struct ConvChoice {
  int algorithm = -1;       // number of an algorithm; -1: any
  int math = -1;            // 0: no algorithm that uses tensor cores; -1 and 1: any
  bool is_measured = true;  // false: use the vendor's first proposal without timing
};

// Shapes: x (N,C,D...), w (K,C/group,kernel...), b (K), y (N,K,D'...). Correlation: the kernel
// is not flipped. Multiply-adds of one pass: count(y) * count(w) / K.
// (x, w[, bias]) -> (y):  y = x * w + bias, then the epilogue. If x is quantized, w is float and is
// quantized for each output channel so that its largest weight becomes 127.
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
  OperandSet item_inputs() const { return WithEpilogueData({kX}, epilogue); }
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
