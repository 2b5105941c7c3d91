// Functions of floats whose loops vectorise on every processor: polynomials without tables or
// calls.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "caffe/host_device.hpp"

namespace caffe::cpu {

// exp(x) with an error of at most 2 units in the last place. Below the smallest normal number the
// result is 0.
inline CAFFE_FORCE_INLINE float FastExp(float x) {
  constexpr float kRounds = 0x1.8p23F;  // added, it leaves no bits of a fraction
  constexpr float kSmallest = -87.33654F, kLargest = 88.72283F;
  const float shifted = x * 1.44269504F + kRounds;
  const float power = shifted - kRounds;  // of 2
  // ln 2 in two parts, the first with few bits, so that the product is exact.
  const float rest = (x - power * 0.693359375F) + power * 2.12194440e-4F;
  float y = 1.9875691500e-4F;  // of Cephes' expf
  y = y * rest + 1.3981999507e-3F;
  y = y * rest + 8.3334519073e-3F;
  y = y * rest + 4.1665795894e-2F;
  y = y * rest + 1.6666665459e-1F;
  y = y * rest + 5.0000001201e-1F;
  y = (y * rest) * rest + rest + 1.0F;
  // The low bits of `shifted` are the power.
  const uint32_t bits = std::bit_cast<uint32_t>(y) + (std::bit_cast<uint32_t>(shifted) << 23);
  y = x < kSmallest ? 0.0F : std::bit_cast<float>(bits);
  return x <= kLargest ? y : x * std::numeric_limits<float>::infinity();  // NaN stays NaN
}

// 1 / (1 + exp(-x)) with an error of at most 3 units in the last place.
inline CAFFE_FORCE_INLINE float FastSigmoid(float x) {
  return 1.0F / (1.0F + FastExp(-x));
}

// tanh(x) with an error of at most 3 units in the last place.
inline CAFFE_FORCE_INLINE float FastTanh(float x) {
  const float square = x * x;
  float rest = -5.70498872745e-3F;  // of Cephes' tanhf, for small x
  rest = rest * square + 2.06390887954e-2F;
  rest = rest * square - 5.37397155531e-2F;
  rest = rest * square + 1.33314422036e-1F;
  rest = rest * square - 3.33332819422e-1F;
  const float small = rest * square * x + x;
  const float large = 1.0F - 2.0F / (FastExp(2.0F * x) + 1.0F);
  return square < 0.390625F ? small : large;  // |x| < 0.625
}

// The normal distribution (mean 0, variance 1) at x.
struct Normal {
  float probability;  // of numbers up to x
  float bell;         // exp(-x^2 / 2)
};

// Both with a relative error of at most 10^-6 within [-5, 5].
inline CAFFE_FORCE_INLINE Normal FastNormal(float x) {
  const float size = x < 0.0F ? -x : x;
  const float bell = FastExp(-0.5F * x * x);
  // The probability of numbers beyond `size` is bell * t * polynomial(t), fitted with a relative
  // error of 2 * 10^-8.
  const float t = 1.0F / (1.0F + 0.21F * size);
  float tail = -7.129507693e-2F;
  tail = tail * t + 2.818057554e-1F;
  tail = tail * t - 3.264954540e-1F;
  tail = tail * t + 3.449889040e-1F;
  tail = tail * t - 9.077397977e-2F;
  tail = tail * t + 1.234726254e-1F;
  tail = tail * t + 6.956963319e-2F;
  tail = tail * t + 8.501245371e-2F;
  tail = tail * t + 8.371515041e-2F;
  tail = tail * t * bell;
  return {x < 0.0F ? tail : 1.0F - tail, bell};
}

// The derivative of GELU.
inline CAFFE_FORCE_INLINE float FastGeluSlope(float x) {
  const Normal normal = FastNormal(x);
  return normal.probability + x * (0.39894228F * normal.bell);  // sqrt(1 / (2 pi))
}

}  // namespace caffe::cpu
