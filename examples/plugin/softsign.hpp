// Operations of layer Softsign. Kernels of each device apply their formulas to each element.
#pragma once

#include <cmath>

#include "caffe/host_device.hpp"
#include "caffe/ops/pointwise.hpp"

namespace example {

// (x) -> (y):  y = x / (width + |x|).
struct Softsign : caffe::ops::UnaryPointwise {
  static constexpr std::string_view kName = "Softsign";
  float width = 1;

  explicit Softsign(float width) : width(width) {}
  std::string Attributes() const { return caffe::StrCat("width ", width); }
  template <typename A>
  CAFFE_HOST_DEVICE A Apply(A x) const {
    return x / (A(width) + std::abs(x));
  }
};

// (x, dy) -> (dx):  dx = dy * width / (width + |x|)^2.
struct SoftsignGrad : caffe::ops::BinaryPointwise {
  static constexpr std::string_view kName = "SoftsignGrad";
  float width = 1;

  explicit SoftsignGrad(float width) : width(width) {}
  std::string Attributes() const { return caffe::StrCat("width ", width); }
  template <typename A>
  CAFFE_HOST_DEVICE A Apply(A x, A dy) const {
    const A sum = A(width) + std::abs(x);
    return dy * A(width) / (sum * sum);
  }
};

}  // namespace example
