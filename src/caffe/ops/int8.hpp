// Arithmetic of quantized values, shared by all devices: value = scale * number, with 8-bit numbers
// around 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "caffe/error.hpp"
#include "caffe/host_device.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/ops/pool.hpp"

namespace caffe::ops {

// Maximum number of products 255 * 127 that fit a 32-bit sum.
inline constexpr int64_t kMostSummands = 66311;
// Maximum number of products 255 * 255 that fit a 32-bit sum.
inline constexpr int64_t kMostSummandsOfData = 33025;
// Maximum number of values 255 that fit a 32-bit sum.
inline constexpr int64_t kMostAveraged = 8421504;

// Traits of kernels of 8-bit data; kInt8 stands for signed and unsigned numbers. Sums are 32-bit
// integers, and all later arithmetic is float.
inline KernelTraits Int8Traits(bool (*fuses)(const Epilogue&) = nullptr) {
  return {.signatures = {{DType::kInt8, DType::kFloat}}, .fuses = fuses};
}

// Why sums of averages over 4-D images would overflow; empty if they fit.
inline std::string WhyNotAverage(const PoolGeometry& geometry, const Shape& images) {
  const int64_t pixels =
      std::min(geometry.kernel[0], images[2]) * std::min(geometry.kernel[1], images[3]);
  if (pixels <= kMostAveraged) return "";
  return StrCat("its sums of ", pixels, " numbers do not fit 32 bits, which hold ", kMostAveraged);
}

// Traits of kernels of AvePool.
inline KernelTraits Int8AverageTraits() {
  KernelTraits traits = Int8Traits();
  traits.why_not = [](const Op& op, std::span<const OperandDesc> inputs, const Device&) {
    return WhyNotAverage(op.As<AvePool>()->geometry, inputs[0].shape);
  };
  return traits;
}

// Why pairs of matrices cannot be multiplied in 8 bits; empty if they can.
inline std::string WhyNotPairs(const BatchedGemm& op) {
  if (FirstFreeAxis(op) != 0) return "it adds up products of matrices";
  if (op.inner <= kMostSummandsOfData) return "";
  return StrCat("its sums of ", op.inner, " products do not fit 32 bits, which hold ",
                kMostSummandsOfData);
}

// Traits of kernels of BatchedGemm.
inline KernelTraits Int8PairsTraits() {
  KernelTraits traits = Int8Traits();
  traits.why_not = [](const Op& op, std::span<const OperandDesc>, const Device&) {
    return WhyNotPairs(*op.As<BatchedGemm>());
  };
  return traits;
}

// Supports the addition of another tensor, then ReLUs and clips. All kernels of a device support
// the same epilogues, so that plans do not depend on the processor.
inline bool FusesNumbers(const Epilogue& epilogue) {
  using Kind = Pointwise::Kind;
  for (size_t i = 0; i < epilogue.size(); ++i) {
    const Kind kind = epilogue[i].kind;
    const bool is_served =
        kind == Kind::kRelu || kind == Kind::kClip || (kind == Kind::kAdd && i == 0);
    if (!is_served) return false;
  }
  return true;
}

// Calls fn(TypeTag<T>{}) with uint8_t, int8_t or float.
template <typename Fn>
void VisitNumber(DType dtype, Fn&& fn) {
  if (dtype == DType::kUInt8) return fn(TypeTag<uint8_t>{});
  if (dtype == DType::kInt8) return fn(TypeTag<int8_t>{});
  CAFFE_ASSERT(dtype == DType::kFloat, "no 8-bit kernel for ", Name(dtype));
  fn(TypeTag<float>{});
}

// Converts a value in units of T's scale to the nearest number (ties to even), clipped. Accepts any
// float; NaN becomes the lowest number.
template <typename T>
CAFFE_HOST_DEVICE inline T ToNumber(float value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else {
    constexpr float kLowest = std::numeric_limits<T>::lowest(),
                    kMost = std::numeric_limits<T>::max();
#ifdef __CUDA_ARCH__
    return static_cast<T>(__float2int_rn(fminf(fmaxf(value, kLowest), kMost)));
#else
    return static_cast<T>(
        static_cast<int32_t>(std::nearbyint(std::min(std::max(kLowest, value), kMost))));
#endif
  }
}

// Floats count as numbers with scale 1.
inline float ScaleOf(const TensorDesc& desc) {
  return Is8Bit(desc.dtype) ? desc.scale : 1.0F;
}

// Lower bound of scales, so that a bias in units of a scale is finite.
inline constexpr float kLeastScale = 1e-30F;

// Factor for a channel's sums, so that they are in units of `unit`.
CAFFE_HOST_DEVICE inline float ChannelFactor(float input_scale, float weight_scale, float unit) {
  const float factor = input_scale * weight_scale / unit;
  return factor < kLeastScale ? kLeastScale : factor;
}

}  // namespace caffe::ops
