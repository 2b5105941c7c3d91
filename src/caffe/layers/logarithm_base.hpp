// The base of Exp and Log.
#pragma once

#include <cmath>

#include "caffe/error.hpp"

namespace caffe {

// Natural logarithm of `base`, where -1 stands for e.
inline double LogOfBase(float base) {
  if (base == -1) return 1;
  Require(base > 0, "base is ", base, "; use a positive base, or -1 for e");
  return std::log(static_cast<double>(base));
}

}  // namespace caffe
