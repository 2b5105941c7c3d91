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

#ifdef __CUDACC__
// nvcc's front end has no _Float16: kernels use the GPU's instruction, and host code in the same
// file calls functions of the library.
CAFFE_EXPORT uint16_t Float16Bits(float value);
CAFFE_EXPORT float Float16Value(uint16_t bits);

inline float16::float16(float value) {
#ifdef __CUDA_ARCH__
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
  bits = Float16Bits(value);
#endif
}
inline float16::operator float() const {
#ifdef __CUDA_ARCH__
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
#else
  return Float16Value(bits);
#endif
}
#elif defined(__FLT16_MAX__)
namespace internal {
#if defined(__aarch64__) && !defined(__clang__)
using Half = __fp16;  // g++ 12 has _Float16 for AArch64 in C only
#else
using Half = _Float16;
#endif
}  // namespace internal
inline float16::float16(float value)
    : bits(std::bit_cast<uint16_t>(static_cast<internal::Half>(value))) {}
inline float16::operator float() const {
  return static_cast<float>(std::bit_cast<internal::Half>(bits));
}
#else
#error "this compiler has no _Float16; use g++ 12 or newer on x86-64 or Arm"
#endif

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
