// Two consecutive convolutions whose intermediate image is never complete in memory.
#pragma once

#include <string>

#include "caffe/ops/conv.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::ops {

// (x, w, bias, w', bias') -> (y):  `first` is applied to x with w and bias, then `second` to its
// result with w' and bias'. Either bias may be absent; no epilogue reads an operand. If x is
// quantized, so are the intermediate image and, as in Conv, both w.
struct CAFFE_EXPORT ConvPair {
  static constexpr std::string_view kName = "ConvPair";
  static constexpr NumericRule kNumericRule = NumericRule::kMath;
  enum Input { kX, kW, kBias, kSecondW, kSecondBias };
  Conv first, second;
  // Type of the intermediate image if x is quantized; else it has x's type.
  DType between = DType::kUInt8;
  float between_scale = 1;

  std::string Attributes() const { return StrCat(first.Attributes(), "; ", second.Attributes()); }
  LayoutRule layout_rule() const {
    return {.inputs = {kX}, .outputs = {0}, .prefers_channels_last = true};
  }
  double Flops(std::span<const TensorDesc> inputs, std::span<const TensorDesc> outputs) const;
  // Describes the intermediate image. Its channels are those of w', because w may be packed.
  TensorDesc Between(const TensorDesc& x, const TensorDesc& second_w) const;
};

// Runs the device's reference kernels of both convolutions one after the other, with the
// intermediate image in the workspace. Not for 16-bit types: they would round that image, which the
// op's definition does not.
CAFFE_EXPORT KernelOrRefusal MakeInTurn(const ConvPair& op, const KernelRequest& request);

}  // namespace caffe::ops
