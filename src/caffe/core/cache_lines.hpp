// Rounds memory sizes up to whole cache lines, which are as wide as the widest vector.
#pragma once

#include <cstddef>
#include <cstdint>

namespace caffe {

inline constexpr size_t kCacheLine = 64;

// `bytes`, rounded up to whole cache lines; must not be negative.
template <typename T>
constexpr T WholeLines(T bytes) {
  constexpr auto kLine = static_cast<T>(kCacheLine);
  return (bytes + kLine - 1) / kLine * kLine;
}

}  // namespace caffe
