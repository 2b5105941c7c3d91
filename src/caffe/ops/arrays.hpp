// Arithmetic of Caffe's C++ API on arrays in GPU memory; no layer emits these ops.
#pragma once

#include <cmath>

#include "caffe/ops/pointwise.hpp"

namespace caffe::ops {

// (x) -> (y):  y = alpha * x + beta.
struct Affine : UnaryPointwise {
  static constexpr std::string_view kName = "Affine";
  double alpha = 1, beta = 0;

  Affine(double alpha, double beta) : alpha(alpha), beta(beta) {}
  std::string Attributes() const { return StrCat("alpha ", alpha, ", beta ", beta); }
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x) const {
    return A(alpha) * x + A(beta);
  }
};

// (x) -> (y):  y = pow(x, exponent).
struct RaiseTo : UnaryPointwise {
  static constexpr std::string_view kName = "RaiseTo";
  double exponent = 1;

  explicit RaiseTo(double exponent) : exponent(exponent) {}
  std::string Attributes() const { return StrCat("exponent ", exponent); }
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x) const {
    return std::pow(x, A(exponent));
  }
};

// (x) -> (y):  y = the square root of x.
struct SquareRoot : UnaryPointwise {
  static constexpr std::string_view kName = "SquareRoot";
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x) const {
    return std::sqrt(x);
  }
};

// (x) -> (y):  y = -1, 0 or 1.
struct Sign : UnaryPointwise {
  static constexpr std::string_view kName = "Sign";
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x) const {
    return A((A(0) < x) - (x < A(0)));
  }
};

// (x) -> (y):  y = 1 if the sign bit is set, as it is for -0, else 0.
struct SignBit : UnaryPointwise {
  static constexpr std::string_view kName = "SignBit";
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x) const {
    return std::copysign(A(1), x) < A(0) ? A(1) : A(0);
  }
};

// (x, y) -> (z):  z = alpha * x + beta * y.
struct Axpby : BinaryPointwise {
  static constexpr std::string_view kName = "Axpby";
  double alpha = 1, beta = 1;

  Axpby(double alpha, double beta) : alpha(alpha), beta(beta) {}
  std::string Attributes() const { return StrCat("alpha ", alpha, ", beta ", beta); }
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x, A y) const {
    return A(alpha) * x + A(beta) * y;
  }
};

// (x, y) -> (z):  z = x / y.
struct Divide : BinaryPointwise {
  static constexpr std::string_view kName = "Divide";
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x, A y) const {
    return x / y;
  }
};

}  // namespace caffe::ops
