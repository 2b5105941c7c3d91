// Patches of an image as columns, and back.
#pragma once

#include "caffe/ops/conv.hpp"

namespace caffe::ops {

// (x) -> (columns):  x (N,C,D...) becomes (N, C * kernel size, D'...): what a convolution's kernel
// covers at each output position, zeros where that is padding. The group is not used.
struct Im2col {
  static constexpr std::string_view kName = "Im2col";
  ConvGeometry geometry;
  std::string Attributes() const { return geometry.ToString(); }
};

// (columns) -> (x):  each column's elements added to where they came from.
struct Col2im {
  static constexpr std::string_view kName = "Col2im";
  ConvGeometry geometry;
  std::string Attributes() const { return geometry.ToString(); }
};

}  // namespace caffe::ops
