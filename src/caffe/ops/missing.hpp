// Pointwise ops on data with missing values, which are NaN.
#pragma once

#include <limits>

#include "caffe/ops/pointwise.hpp"

namespace caffe::ops {

// (x) -> (y):  y = 1 for numbers, 0 for NaN.
struct IsKnown : UnaryPointwise {
  static constexpr std::string_view kName = "IsKnown";
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x) const {
    return x == x ? A(1) : A(0);
  }
};

// (x) -> (y):  y = x for numbers, 0 for NaN.
struct KnownOrZero : UnaryPointwise {
  static constexpr std::string_view kName = "KnownOrZero";
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x) const {
    return x == x ? x : A(0);
  }
};

// (share, sum) -> (y):  the weighted mean of the known values. share is their share of all weights
// and sum their weighted sum: y = sum / share; NaN if the unknown values weigh more than half of
// the known ones, with a tolerance for rounding.
struct MeanOfKnown : BinaryPointwise {
  static constexpr std::string_view kName = "MeanOfKnown";
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A share, A sum) const {
    return A(1.5) * share < A(1) - A(1e-3) ? std::numeric_limits<A>::quiet_NaN() : sum / share;
  }
};

}  // namespace caffe::ops
