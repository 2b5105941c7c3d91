// Two convolutions, one behind the other, whose image between them is never whole in memory.
#pragma once

#include <string>

#include "caffe/ops/conv.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::ops {

// (x, w, bias, w', bias') -> (y):  what `second` makes with w' and bias' of what `first` makes of x
// with w and bias. Either bias may be absent; no epilogue reads an operand. Where x is quantised,
// so is the image between them, and both w as in Conv.
struct CAFFE_EXPORT ConvPair {
  static constexpr std::string_view kName = "ConvPair";
  static constexpr NumericRule kNumericRule = NumericRule::kMath;
  enum Input { kX, kW, kBias, kSecondW, kSecondBias };
  Conv first, second;
  // Of the image between them where x is quantised; else it has x's type.
  DType between = DType::kUInt8;
  float between_scale = 1;

  std::string Attributes() const { return StrCat(first.Attributes(), "; ", second.Attributes()); }
  LayoutRule layout_rule() const {
    return {.inputs = {kX}, .outputs = {0}, .prefers_channels_last = true};
  }
  double Flops(std::span<const TensorDesc> inputs, std::span<const TensorDesc> outputs) const;
  // The image between them; w may be packed, so w' tells its channels.
  TensorDesc Between(const TensorDesc& x, const TensorDesc& second_w) const;
};

// The device's reference kernels of both convolutions, one after the other, with the image between
// them in the workspace. In 16 bits that image would be rounded, which the op's meaning does not
// have.
CAFFE_EXPORT KernelOrRefusal MakeInTurn(const ConvPair& op, const KernelRequest& request);

}  // namespace caffe::ops
