// Copies patches of an image to columns, and back.
#pragma once

#include "caffe/ops/conv.hpp"

namespace caffe::ops {

// (x) -> (columns):  x (N,C,D...) becomes (N, C * kernel size, D'...): the elements under a
// convolution's kernel at each output position, zeros for padding. The group is ignored.
struct Im2col {
  static constexpr std::string_view kName = "Im2col";
  ConvGeometry geometry;
  std::string Attributes() const { return geometry.ToString(); }
};

// (columns) -> (x):  adds each column's elements to their places in x.
struct Col2im {
  static constexpr std::string_view kName = "Col2im";
  ConvGeometry geometry;
  std::string Attributes() const { return geometry.ToString(); }
};

}  // namespace caffe::ops
