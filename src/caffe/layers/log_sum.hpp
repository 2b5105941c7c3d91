// Sums of numbers that are given by their logarithms.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace caffe {

inline constexpr double kLogZero = -std::numeric_limits<double>::infinity();

// log(exp(a) + exp(b))
inline double LogAdd(double a, double b) {
  if (a == kLogZero) return b;
  if (b == kLogZero) return a;
  const double largest = std::max(a, b), smallest = a < b ? a : b;
  const double one = 1 + (largest - largest);  // exp(0), but NaN of infinity
  return largest + std::log(one + std::exp(smallest - largest));
}

}  // namespace caffe
