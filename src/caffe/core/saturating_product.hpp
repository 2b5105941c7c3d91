// A product of options and extents that does not overflow.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>

namespace caffe {

// Product of non-negative factors, or the largest int64_t if the product is larger. Compare it with
// a count: a wrapped product of 32-bit options may be equal to the count by accident.
inline int64_t SaturatingProduct(std::span<const int64_t> factors) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  int64_t product = 1;
  for (const int64_t factor : factors) {
    if (factor == 0) return 0;
    product = product <= kMost / factor ? product * factor : kMost;
  }
  return product;
}
inline int64_t SaturatingProduct(std::initializer_list<int64_t> factors) {
  return SaturatingProduct(std::span(factors.begin(), factors.size()));
}

}  // namespace caffe
