// Pointwise ops: the formula is written once and shared by every device.
#pragma once

#include <cmath>
#include <string>

#include "caffe/host_device.hpp"
#include "caffe/ops/op.hpp"

namespace caffe::ops {

// (x) -> (y) with one formula per element.
struct UnaryPointwise {
  static constexpr bool kInPlace = true;
  static constexpr OperandSet kItemInputs = {0};
  LayoutRule layout_rule() const { return kFollowFirstInput; }
};

// (s, dy) -> (dx) with one formula per element; s and dy have the same shape.
struct BinaryPointwise {
  static constexpr bool kInPlace = true;
  LayoutRule layout_rule() const { return kFollowBothInputs; }
};

// (x) -> (y):  y = x for x > 0, negative_slope * x otherwise. Never -0, unlike max(x, 0).
struct Relu : UnaryPointwise {
  static constexpr std::string_view kName = "Relu";
  float negative_slope = 0;

  explicit Relu(float slope = 0) : negative_slope(slope) {}
  std::string Attributes() const {
    return negative_slope == 0 ? "" : StrCat("negative_slope ", negative_slope);
  }
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x) const {
    return x > A(0) ? x : A(negative_slope) * x + A(0);
  }
};

// (sign_source, dy) -> (dx).  sign_source is any tensor with the same signs as the input.
struct ReluGrad : BinaryPointwise {
  static constexpr std::string_view kName = "ReluGrad";
  float negative_slope = 0;

  explicit ReluGrad(float slope = 0) : negative_slope(slope) {}
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A s, A dy) const {
    return s > A(0) ? dy : A(negative_slope) * dy;
  }
};

// (x) -> (y):  y = 1 / (1 + exp(-x)), computed with tanh, which does not overflow.
struct Sigmoid : UnaryPointwise {
  static constexpr std::string_view kName = "Sigmoid";
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x) const {
    return A(0.5) * std::tanh(A(0.5) * x) + A(0.5);
  }
};

// (y, dy) -> (dx):  dx = dy * y * (1 - y).
struct SigmoidGrad : BinaryPointwise {
  static constexpr std::string_view kName = "SigmoidGrad";
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A y, A dy) const {
    return dy * y * (A(1) - y);
  }
};

// (x) -> (y):  y = tanh(x).
struct Tanh : UnaryPointwise {
  static constexpr std::string_view kName = "Tanh";
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x) const {
    return std::tanh(x);
  }
};

// (y, dy) -> (dx):  dx = dy * (1 - y^2).
struct TanhGrad : BinaryPointwise {
  static constexpr std::string_view kName = "TanhGrad";
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A y, A dy) const {
    return dy * (A(1) - y * y);
  }
};

// (x) -> (y):  y = factor * x.
struct ScaleBy : UnaryPointwise {
  static constexpr std::string_view kName = "ScaleBy";
  double factor = 1;

  explicit ScaleBy(double factor) : factor(factor) {}
  std::string Attributes() const { return StrCat("factor ", factor); }
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x) const {
    return A(factor) * x;
  }
};

}  // namespace caffe::ops
