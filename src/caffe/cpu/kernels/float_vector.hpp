// FloatVector: 16 floats that are processed together, as channels of a channels-last image.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "caffe/core/cpu_clones.hpp"
#include "caffe/dtype.hpp"

namespace caffe::cpu {

inline constexpr int kFloatLanes = 16;

// g++ maps it to registers of the instruction set: one of AVX-512 or two of AVX2.
using FloatVector = float __attribute__((vector_size(kFloatLanes * sizeof(float))));
using FloatBits = uint32_t __attribute__((vector_size(kFloatLanes * sizeof(uint32_t))));
using IntVector = int32_t __attribute__((vector_size(kFloatLanes * sizeof(int32_t))));
using ByteBits = uint8_t __attribute__((vector_size(kFloatLanes)));
using SignedBytes = int8_t __attribute__((vector_size(kFloatLanes)));
using HalfBits = uint16_t __attribute__((vector_size(kFloatLanes * sizeof(uint16_t))));

// Vectors are passed by reference, because passing by value depends on the instruction set.
inline CAFFE_FORCE_INLINE void Load(const float* from, FloatVector& to) {
  std::memcpy(&to, from, sizeof(to));
}
inline CAFFE_FORCE_INLINE void Load(const bfloat16* from, FloatVector& to) {
  HalfBits bits;
  std::memcpy(&bits, from, sizeof(bits));
  const FloatBits wide = __builtin_convertvector(bits, FloatBits) << 16;
  std::memcpy(&to, &wide, sizeof(to));
}
inline CAFFE_FORCE_INLINE void Load(const uint8_t* from, FloatVector& to) {
  ByteBits bytes;
  std::memcpy(&bytes, from, sizeof(bytes));
  to = __builtin_convertvector(__builtin_convertvector(bytes, IntVector), FloatVector);
}
inline CAFFE_FORCE_INLINE void Load(const int8_t* from, FloatVector& to) {
  SignedBytes bytes;
  std::memcpy(&bytes, from, sizeof(bytes));
  to = __builtin_convertvector(__builtin_convertvector(bytes, IntVector), FloatVector);
}
inline CAFFE_FORCE_INLINE void Store(const FloatVector& from, float* to) {
  std::memcpy(to, &from, sizeof(from));
}

// Rounds to nearest even; NaN stays NaN.
inline CAFFE_FORCE_INLINE void Store(const FloatVector& from, bfloat16* to) {
  FloatBits bits;
  std::memcpy(&bits, &from, sizeof(bits));
  const FloatBits rounded = bits + 0x7FFF + (bits >> 16 & 1);
  const FloatBits kept = from == from ? rounded : bits | 0x400000;
  const HalfBits halves = __builtin_convertvector(kept >> 16, HalfBits);
  std::memcpy(static_cast<void*>(to), &halves, sizeof(halves));
}

// Number of lanes: all, or only the first ones.
using AllLanes = std::integral_constant<int64_t, kFloatLanes>;
template <typename T>
inline CAFFE_FORCE_INLINE void Load(const T* from, AllLanes, FloatVector& to) {
  Load(from, to);
}
template <typename T>
inline CAFFE_FORCE_INLINE void Load(const T* from, int64_t lanes, FloatVector& to) {
  T all[kFloatLanes] = {};
  std::memcpy(static_cast<void*>(all), from, static_cast<size_t>(lanes) * sizeof(T));
  Load(all, to);
}

// Calls fn(first channel, lanes) for each vector of channels.
template <typename Fn>
inline CAFFE_FORCE_INLINE void ForVectors(int64_t channels, const Fn& fn) {
  int64_t c = 0;
  for (; c + kFloatLanes <= channels; c += kFloatLanes) fn(c, AllLanes{});
  if (c < channels) fn(c, channels - c);
}

// Calls fn(integral_constant<int, i>) for i below kCount. Arrays of vectors that are indexed with
// these constants stay in registers.
template <int kCount, typename Fn>
inline CAFFE_FORCE_INLINE void Unroll(const Fn& fn) {
  [&]<int... kIndices>(std::integer_sequence<int, kIndices...>) CAFFE_FORCE_INLINE {
    (fn(std::integral_constant<int, kIndices>{}), ...);
  }
  (std::make_integer_sequence<int, kCount>{});
}

}  // namespace caffe::cpu
