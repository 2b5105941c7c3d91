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
  const double largest = std::max(a, b);
  return largest + std::log(std::exp(a - largest) + std::exp(b - largest));
}

}  // namespace caffe
