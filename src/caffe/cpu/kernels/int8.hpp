// Arithmetic of quantized values: value = scale * number, with 8-bit numbers around 0.
#pragma once

#include <algorithm>
#include <cmath>

#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/int8.hpp"

namespace caffe::cpu {

using ops::ChannelFactor;
using ops::FusesNumbers;
using ops::Int8Traits;
using ops::kLeastScale;
using ops::ScaleOf;
using ops::ToNumber;
using ops::VisitNumber;

// Stores `value` in element i, converted to y's type and scale.
inline void StoreNumber(const TensorView& y, int64_t i, float value) {
  VisitNumber(y.dtype,
              [&]<typename T>(TypeTag<T>) { y.as<T>()[i] = ToNumber<T>(value / ScaleOf(y)); });
}

// Quantizes the weights of one output channel, `stride` apart, to -127 ... 127. Returns their
// scale, by which the largest magnitude becomes 127.
CAFFE_CPU_CLONES inline float QuantizeRow(const float* w, int64_t count, int64_t stride,
                                          int8_t* numbers) {
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(w[i * stride]));
  const float scale = std::max(largest / 127, kLeastScale);
  for (int64_t i = 0; i < count; ++i) numbers[i] = ToNumber<int8_t>(w[i * stride] / scale);
  return scale;
}

}  // namespace caffe::cpu
