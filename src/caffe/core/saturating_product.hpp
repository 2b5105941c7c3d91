// A product of options and extents that may be larger than any integer.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>

namespace caffe {

// The largest int64_t where the product of `factors`, none of which is negative, is larger. To be
// compared with what there is: options of 32 bits, multiplied as they are, may come out equal.
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
