// The option eps of layers that normalize.
#pragma once

#include <cmath>

#include "caffe/error.hpp"

namespace caffe {

// Throws InvalidArgument unless a number that is added to a variance or a norm can be.
inline void RequireEps(double eps) {
  Require(eps >= 0 && std::isfinite(eps), "eps is ", eps,
          "; it is added to what is divided by, so it must be a small number of 0 or more");
}

}  // namespace caffe
