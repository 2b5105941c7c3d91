// A convolution that writes into some of the channels of a tensor which others fill, too, so that
// nothing has to be copied where a concatenation joins them.
#pragma once

#include <string>

#include "caffe/ops/conv.hpp"

namespace caffe::ops {

// (x, w, bias, whole) -> (joined):  the channels of `joined` from `offset` on are what `conv` makes
// of the first three; the others are those of `whole`, and without one they are not written. bias
// may be absent; conv's epilogue reads no operand. `joined` may have the memory of `whole`.
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
  // What the convolution alone would make.
  static TensorDesc Part(const TensorDesc& joined, const TensorDesc& w);
};

}  // namespace caffe::ops
