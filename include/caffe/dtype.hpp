// Element types: run-time tags, the two 16-bit storage types, and the only dtype switch.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "caffe/error.hpp"

namespace caffe {

// Storage types of blobs. Numbers follow `enum Type` of caffe.proto where that has them.
enum class DType : uint8_t { kDouble = 0, kFloat = 1, kFloat16 = 2, kBFloat16 = 6 };

// IEEE 754 binary16. Storage only: arithmetic happens in float.
struct float16 {
  uint16_t bits = 0;
  float16() = default;
  explicit float16(float value);
  explicit float16(double value) : float16(static_cast<float>(value)) {}
  explicit operator float() const;
  explicit operator double() const { return static_cast<float>(*this); }
};

// The upper half of a binary32. Storage only; rounds to nearest even.
struct bfloat16 {
  uint16_t bits = 0;
  bfloat16() = default;
  explicit bfloat16(float value) {
    const uint32_t word = std::bit_cast<uint32_t>(value);
    const bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;
    bits = is_nan ? static_cast<uint16_t>((word >> 16) | 0x40u)
                  : static_cast<uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
  }
  explicit bfloat16(double value) : bfloat16(static_cast<float>(value)) {}
  explicit operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
  explicit operator double() const { return static_cast<float>(*this); }
};

#if defined(__FLT16_MAX__) && !defined(__CUDACC__)
inline float16::float16(float value)
    : bits(std::bit_cast<uint16_t>(static_cast<_Float16>(value))) {}
inline float16::operator float() const {
  return static_cast<float>(std::bit_cast<_Float16>(bits));
}
#else
#error "this compiler has no _Float16; use g++ 12 or newer on x86-64"
#endif

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

constexpr size_t SizeOf(DType dtype) {
  return dtype == DType::kDouble ? 8 : dtype == DType::kFloat ? 4 : 2;
}

// "double", "float", "float16", "bfloat16".
std::string_view Name(DType dtype);

// Calls fn(TypeTag<T>{}) with the C++ type of `dtype`. The only switch over types.
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
  }
  throw InternalError("VisitFloat: unknown dtype");
}

}  // namespace caffe
