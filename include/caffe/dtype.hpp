// Element types: run-time tags, the two 16-bit storage types, and the only dtype switch.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "caffe/error.hpp"
#include "caffe/export.hpp"
#include "caffe/host_device.hpp"

namespace caffe {

// Storage types. Values equal those of `enum Type` of caffe.proto where it has the type. kUInt8 and
// kInt8 hold quantised values (TensorDesc::scale); kUInt8 also holds masks, and pixels before a net
// computes with them. Blobs never have these two types.
enum class DType : uint8_t {
  kDouble = 0,
  kFloat = 1,
  kFloat16 = 2,
  kBFloat16 = 6,
  kUInt8 = 7,
  kInt8 = 8
};

// IEEE 754 binary16. Storage only: arithmetic happens in float.
struct float16 {
  uint16_t bits = 0;
  float16() = default;
  CAFFE_HOST_DEVICE inline explicit float16(float value);
  CAFFE_HOST_DEVICE explicit float16(double value) : float16(static_cast<float>(value)) {}
  CAFFE_HOST_DEVICE inline explicit operator float() const;
  CAFFE_HOST_DEVICE explicit operator double() const { return static_cast<float>(*this); }
};

// The upper half of a binary32. Storage only; rounds to nearest even.
struct bfloat16 {
  uint16_t bits = 0;
  bfloat16() = default;
  CAFFE_HOST_DEVICE inline explicit bfloat16(float value);
  CAFFE_HOST_DEVICE explicit bfloat16(double value) : bfloat16(static_cast<float>(value)) {}
  CAFFE_HOST_DEVICE explicit operator float() const {
    return std::bit_cast<float>(uint32_t{bits} << 16);
  }
  CAFFE_HOST_DEVICE explicit operator double() const { return static_cast<float>(*this); }
};

// Integer arithmetic instead of instructions, which not every x86-64 processor has and which g++ 12
// does not use for several elements at once: these loops are vectorized.
inline float16::float16(float value) {
#ifdef __CUDA_ARCH__
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
  const uint32_t word = std::bit_cast<uint32_t>(value), magnitude = word & 0x7fffffffu;
  // The sum with a power of two whose last bit is the result's rounds to nearest even. Factors make
  // numbers beyond the type infinite; below 2^-14 the last bit stays the same.
  const uint32_t exponent = (word << 1) & 0xff000000u;
  const uint32_t power = ((exponent < 0x71000000u ? 0x71000000u : exponent) >> 1) + 0x07800000u;
  const float scaled = (std::bit_cast<float>(magnitude) * 0x1p+112f) * 0x1p-110f;
  const uint32_t sum = std::bit_cast<uint32_t>(std::bit_cast<float>(power) + scaled);
  const uint32_t number = ((sum >> 13) & 0x7c00u) + (sum & 0xfffu);
  const uint32_t nan = 0x7e00u | ((word >> 13) & 0x3ffu);
  bits = static_cast<uint16_t>(((word >> 16) & 0x8000u) | (magnitude > 0x7f800000u ? nan : number));
#endif
}
inline float16::operator float() const {
#ifdef __CUDA_ARCH__
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
#else
  const uint32_t word = uint32_t{bits} << 16, magnitude = word << 1;
  // The factor corrects the exponent's bias, which grows so far that infinity and NaN stay so.
  const float normal = std::bit_cast<float>((magnitude >> 4) + 0x70000000u) * 0x1p-112f;
  const float subnormal = std::bit_cast<float>((magnitude >> 17) | 0x3f000000u) - 0.5f;
  const float value = magnitude < 0x08000000u ? subnormal : normal;
  return std::bit_cast<float>((word & 0x80000000u) | std::bit_cast<uint32_t>(value));
#endif
}

inline bfloat16::bfloat16(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  // One instruction instead of seven; it maps all NaNs to one NaN.
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
  const uint32_t word = std::bit_cast<uint32_t>(value);
  const bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;
  bits = is_nan ? static_cast<uint16_t>((word >> 16) | 0x40u)
                : static_cast<uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
#endif
}

// Type in which arithmetic on T happens: float for 16-bit types, T itself otherwise.
template <typename T>
using Accum = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <typename T>
struct TypeTag {
  using type = T;
};

template <typename T>
inline constexpr DType kDTypeOf = DType::kFloat;
template <>
inline constexpr DType kDTypeOf<double> = DType::kDouble;
template <>
inline constexpr DType kDTypeOf<float16> = DType::kFloat16;
template <>
inline constexpr DType kDTypeOf<bfloat16> = DType::kBFloat16;
template <>
inline constexpr DType kDTypeOf<uint8_t> = DType::kUInt8;
template <>
inline constexpr DType kDTypeOf<int8_t> = DType::kInt8;

constexpr bool Is8Bit(DType dtype) {
  return dtype == DType::kUInt8 || dtype == DType::kInt8;
}

constexpr size_t SizeOf(DType dtype) {
  if (Is8Bit(dtype)) return 1;
  return dtype == DType::kDouble ? 8 : dtype == DType::kFloat ? 4 : 2;
}

// "double", "float", "float16", "bfloat16", "uint8", "int8".
CAFFE_EXPORT std::string_view Name(DType dtype);

// Calls fn(TypeTag<T>{}) with the C++ type of `dtype`, which must not be a byte type. The only
// switch over types.
template <typename Fn>
decltype(auto) VisitFloat(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kDouble:
      return fn(TypeTag<double>{});
    case DType::kFloat:
      return fn(TypeTag<float>{});
    case DType::kFloat16:
      return fn(TypeTag<float16>{});
    case DType::kBFloat16:
      return fn(TypeTag<bfloat16>{});
    case DType::kUInt8:
    case DType::kInt8:
      break;
  }
  throw InternalError("VisitFloat: bytes or an unknown dtype");
}

}  // namespace caffe
