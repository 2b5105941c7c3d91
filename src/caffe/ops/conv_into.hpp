// A convolution that writes into some channels of a larger tensor, so that a concatenation needs no
// copy. Other ops fill the other channels.
#pragma once

#include <string>

#include "caffe/ops/conv.hpp"

namespace caffe::ops {

// (x, w, bias, whole) -> (joined):  the channels of `joined` from `offset` on are the result of
// `conv` for the first three operands; the others are copied from `whole`, or not written if
// `whole` is absent. bias may be absent; conv's epilogue reads no operand. `joined` may share the
// memory of `whole`.
struct CAFFE_EXPORT ConvInto {
  static constexpr std::string_view kName = "ConvInto";
  static constexpr NumericRule kNumericRule = NumericRule::kMath;
  enum Input { kX, kW, kBias, kWhole };
  Conv conv;
  int64_t offset = 0;

  std::string Attributes() const { return StrCat(conv.Attributes(), ", offset ", offset); }
  LayoutRule layout_rule() const {
    return {.inputs = {kX, kWhole}, .outputs = {0}, .prefers_channels_last = true};
  }
  double Flops(std::span<const TensorDesc> inputs, std::span<const TensorDesc> outputs) const;
  // Description of the convolution's own result.
  static TensorDesc Part(const TensorDesc& joined, const TensorDesc& w);
};

}  // namespace caffe::ops
