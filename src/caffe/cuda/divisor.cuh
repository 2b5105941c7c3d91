// Division by a number that is constant for a launch: a multiplication and a shift, computed by the
// host (Granlund and Montgomery 1994).
#pragma once

#include <bit>
#include <cstdint>

#include "caffe/cuda/launch.cuh"

namespace caffe::cuda {

// For dividends below 2^31 and divisors from 1 to 2^31.
struct Divisor {
  uint32_t value = 1, factor = 0, shift = 0;

  Divisor() = default;
  explicit Divisor(int64_t divisor) : value(static_cast<uint32_t>(divisor)) {
    if (value == 0) value = 1;                                 // for empty tensors
    shift = static_cast<uint32_t>(std::bit_width(value - 1));  // 2^shift >= value
    factor =
        static_cast<uint32_t>(((uint64_t{1} << 32) * ((uint64_t{1} << shift) - value)) / value + 1);
  }
  __device__ uint32_t Divide(uint32_t x) const {
    return (static_cast<uint32_t>(uint64_t{x} * factor >> 32) + x) >> shift;
  }
  __device__ uint32_t Divide(uint32_t x, uint32_t* remainder) const {
    const uint32_t quotient = Divide(x);
    *remainder = x - quotient * value;
    return quotient;
  }
};

// Largest dividend of a Divisor.
inline constexpr int64_t kMostDividend = INT32_MAX;

}  // namespace caffe::cuda
