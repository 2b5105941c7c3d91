#include "caffe/runtime/weight_rows.hpp"

#include <algorithm>
#include <cmath>

namespace caffe::runtime {
namespace {

constexpr float kMost = 127, kLeastScale = 1e-30F;

// The same scale as kernels derive from the largest magnitude.
float ScaleOf(float largest) {
  return std::max(largest / kMost, kLeastScale);
}

// Calls fn(channel, index of a weight) for each weight.
template <typename Fn>
void ForEach(const WeightRows& rows, int64_t count, const Fn& fn) {
  const int64_t length = count / rows.channels;
  for (int64_t i = 0; i < count; ++i) fn(rows.are_columns ? i % rows.channels : i / length, i);
}

}  // namespace

void EncodeWeights(const WeightRows& rows, const float* weights, int64_t count, void* numbers) {
  auto* const largest = static_cast<float*>(numbers);
  auto* const bytes = reinterpret_cast<int8_t*>(largest + rows.channels);
  std::fill_n(largest, rows.channels, 0.0F);
  ForEach(rows, count,
          [&](int64_t k, int64_t i) { largest[k] = std::max(largest[k], std::abs(weights[i])); });
  ForEach(rows, count, [&](int64_t k, int64_t i) {
    const float number = weights[i] / ScaleOf(largest[k]);
    bytes[i] = static_cast<int8_t>(std::nearbyint(std::min(std::max(-kMost, number), kMost)));
  });
}

void DecodeWeights(const WeightRows& rows, const void* numbers, int64_t count, float* weights) {
  const auto* const largest = static_cast<const float*>(numbers);
  const auto* const bytes = reinterpret_cast<const int8_t*>(largest + rows.channels);
  ForEach(rows, count, [&](int64_t k, int64_t i) {
    const float scale = ScaleOf(largest[k]), number = bytes[i];
    // Restores the largest weight exactly: 127 * (largest / 127) may be another float.
    const bool is_largest = std::abs(number) == kMost && scale > kLeastScale;
    weights[i] = is_largest ? std::copysign(largest[k], number) : number * scale;
  });
}

}  // namespace caffe::runtime
