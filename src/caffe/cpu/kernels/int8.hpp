// Arithmetic of quantised values: value = scale * number, numbers of 8 bits around 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {

// What kernels of 8-bit data declare: kInt8 stands for both types. Sums are 32-bit integers, and
// what is done with them afterwards is float.
inline KernelTraits Int8Traits(bool (*fuses)(const ops::Epilogue&) = nullptr) {
  return {.signatures = {{DType::kInt8, DType::kFloat}}, .fuses = fuses};
}

// A sum with another tensor, then ReLUs and limits: the epilogues of products. All kernels serve
// the same, so that plans are the same on each processor.
inline bool FusesNumbers(const ops::Epilogue& epilogue) {
  using Kind = ops::Pointwise::Kind;
  for (size_t i = 0; i < epilogue.size(); ++i) {
    const Kind kind = epilogue[i].kind;
    const bool is_served =
        kind == Kind::kRelu || kind == Kind::kClip || (kind == Kind::kAdd && i == 0);
    if (!is_served) return false;
  }
  return true;
}

// A value in units of T's scale: the nearest number, of two the even one, clipped. Any float;
// NaN becomes the lowest.
template <typename T>
inline T ToNumber(float value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else {
    constexpr float kLowest = std::numeric_limits<T>::lowest(),
                    kMost = std::numeric_limits<T>::max();
    return static_cast<T>(
        static_cast<int32_t>(std::nearbyint(std::min(std::max(kLowest, value), kMost))));
  }
}

// Calls fn(TypeTag<T>{}) with uint8_t, int8_t or float.
template <typename Fn>
void VisitNumber(DType dtype, Fn&& fn) {
  if (dtype == DType::kUInt8) return fn(TypeTag<uint8_t>{});
  if (dtype == DType::kInt8) return fn(TypeTag<int8_t>{});
  CAFFE_ASSERT(dtype == DType::kFloat, "no 8-bit kernel for ", Name(dtype));
  fn(TypeTag<float>{});
}

// The scale of floats, which are their own numbers, is 1.
inline float ScaleOf(const TensorDesc& desc) {
  return Is8Bit(desc.dtype) ? desc.scale : 1.0F;
}

// Element i = value, in y's type and scale.
inline void StoreNumber(const TensorView& y, int64_t i, float value) {
  VisitNumber(y.dtype,
              [&]<typename T>(TypeTag<T>) { y.as<T>()[i] = ToNumber<T>(value / ScaleOf(y)); });
}

// No scale is smaller, so that a bias in its units is finite.
inline constexpr float kLeastScale = 1e-30F;

// Quantises the weights of one output channel, `stride` apart, to -127 ... 127 and returns their
// scale: that of the largest.
CAFFE_CPU_CLONES inline float QuantizeRow(const float* w, int64_t count, int64_t stride,
                                          int8_t* numbers) {
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(w[i * stride]));
  const float scale = std::max(largest / 127, kLeastScale);
  for (int64_t i = 0; i < count; ++i) numbers[i] = ToNumber<int8_t>(w[i * stride] / scale);
  return scale;
}

// What multiplies the sums of a channel, in units of `unit`.
inline float ChannelFactor(float input_scale, float weight_scale, float unit) {
  return std::max(input_scale * weight_scale / unit, kLeastScale);
}

}  // namespace caffe::cpu
