// Layers whose bottoms are broadcast as in NumPy.
#pragma once

#include <vector>

#include "caffe/shape.hpp"

namespace caffe {

// The shape of the result. Throws InvalidArgument if the shapes do not fit.
Shape BroadcastShape(const std::vector<Shape>& shapes);

}  // namespace caffe
