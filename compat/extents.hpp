// Shapes as vectors of int, as in BVLC's interface.
#pragma once

#include <vector>

#include "caffe/shape.hpp"

namespace caffe::bvlc {

inline Shape ToShape(const std::vector<int>& extents) {
  return Shape(std::vector<int64_t>(extents.begin(), extents.end()));
}

inline std::vector<int> ToExtents(const Shape& shape) {
  return std::vector<int>(shape.dims().begin(), shape.dims().end());
}

}  // namespace caffe::bvlc
