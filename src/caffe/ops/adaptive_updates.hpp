// Parameter updates of the solvers besides SGD: the formula of one element, shared by every device.
#pragma once

#include <cmath>
#include <string>

#include "caffe/ops/pointwise.hpp"
#include "caffe/ops/update.hpp"

namespace caffe::ops {

// What all elements of one parameter share in one step. The gradient that Delta() gets is
// gradient_scale * g + l2 * w + l1 * sign(w).
template <typename A>
struct UpdateScalars {
  A rate;      // learning rate times the parameter's lr_mult
  A momentum;  // of the step's policy
  A gradient_scale;
  A l1, l2;
  A decay;       // weight decay times decay_mult, for rules that apply it themselves
  A correction;  // of the rule's own: Adam's bias correction
};

// (g, scalars) -> (w, states...), w and states updated in place:  w = w - Delta(...).
// scalars, in double: [rate, momentum, weight_decay, gradient_scale, correction].
struct ElementwiseUpdate {
  static constexpr NumericRule kNumericRule = NumericRule::kFloat;
  Regularization regularization = Regularization::kL2;
  double lr_mult = 1, decay_mult = 1;

  std::string Attributes() const {
    return StrCat("lr_mult ", lr_mult, ", decay_mult ", decay_mult);
  }
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc> outputs) const {
    return 10.0 * static_cast<double>(outputs[0].count());
  }
};

// Accelerated gradient (Nesterov 1983, in Sutskever's form of 2013):
//   h' = momentum * h + rate * g;  delta = (1 + momentum) * h' - momentum * h
struct NesterovUpdate : ElementwiseUpdate {
  static constexpr std::string_view kName = "NesterovUpdate";
  static constexpr int kStates = 1;

  template <typename A>
  CAFFE_HOST_DEVICE inline A Delta(const UpdateScalars<A>& s, A g, A, A* h) const {
    const A before = h[0];
    h[0] = s.momentum * before + s.rate * g;
    return (A(1) + s.momentum) * h[0] - s.momentum * before;
  }
};

// Duchi et al. 2011:  h = h + g^2;  delta = rate * g / (sqrt(h) + eps)
struct AdaGradUpdate : ElementwiseUpdate {
  static constexpr std::string_view kName = "AdaGradUpdate";
  static constexpr int kStates = 1;
  double eps = 1e-8;

  template <typename A>
  CAFFE_HOST_DEVICE inline A Delta(const UpdateScalars<A>& s, A g, A, A* h) const {
    h[0] += g * g;
    return s.rate * g / (std::sqrt(h[0]) + A(eps));
  }
};

// Tieleman and Hinton 2012:  h = decay * h + (1 - decay) * g^2;  delta = rate * g / (sqrt(h) + eps)
struct RmsPropUpdate : ElementwiseUpdate {
  static constexpr std::string_view kName = "RmsPropUpdate";
  static constexpr int kStates = 1;
  double eps = 1e-8, rms_decay = 0.99;

  template <typename A>
  CAFFE_HOST_DEVICE inline A Delta(const UpdateScalars<A>& s, A g, A, A* h) const {
    h[0] = A(rms_decay) * h[0] + A(1 - rms_decay) * g * g;
    return s.rate * g / (std::sqrt(h[0]) + A(eps));
  }
};

// Zeiler 2012, with momentum m as the decay:  h = m h + (1 - m) g^2;
//   u = g * sqrt((d + eps) / (h + eps));  d = m d + (1 - m) u^2;  delta = rate * u
struct AdaDeltaUpdate : ElementwiseUpdate {
  static constexpr std::string_view kName = "AdaDeltaUpdate";
  static constexpr int kStates = 2;
  double eps = 1e-8;

  template <typename A>
  CAFFE_HOST_DEVICE inline A Delta(const UpdateScalars<A>& s, A g, A, A* h) const {
    const A m = s.momentum, rest = A(1) - s.momentum;
    h[0] = m * h[0] + rest * g * g;
    const A step = g * std::sqrt((h[1] + A(eps)) / (h[0] + A(eps)));
    h[1] = m * h[1] + rest * step * step;
    return s.rate * step;
  }
};

// Kingma and Ba 2015:  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;
//   delta = rate * correction * m / (sqrt(v) + eps)
// with b1 = momentum and correction = sqrt(1 - b2^t) / (1 - b1^t). `decoupled` adds rate * decay *
// w to delta instead of decay * w to the gradient (Loshchilov and Hutter 2019).
struct AdamUpdate : ElementwiseUpdate {
  static constexpr std::string_view kName = "AdamUpdate";
  static constexpr int kStates = 2;
  double eps = 1e-8, momentum2 = 0.999;
  bool decoupled = false;

  template <typename A>
  CAFFE_HOST_DEVICE inline A Delta(const UpdateScalars<A>& s, A g, A w, A* h) const {
    h[0] = s.momentum * h[0] + (A(1) - s.momentum) * g;
    h[1] = A(momentum2) * h[1] + A(1 - momentum2) * g * g;
    const A delta = s.rate * s.correction * h[0] / (std::sqrt(h[1]) + A(eps));
    return decoupled ? delta + s.rate * s.decay * w : delta;
  }
};

// NVCaffe's averaged gradient:  h = momentum * h + (1 - momentum) * g;  delta = rate * h
struct SagUpdate : ElementwiseUpdate {
  static constexpr std::string_view kName = "SagUpdate";
  static constexpr int kStates = 1;

  template <typename A>
  CAFFE_HOST_DEVICE inline A Delta(const UpdateScalars<A>& s, A g, A, A* h) const {
    h[0] = s.momentum * h[0] + (A(1) - s.momentum) * g;
    return s.rate * h[0];
  }
};

// Layer-wise adaptive moments (You et al. 2020): Adam's direction with bias correction, plus
// decay * w, made as long as `norm(w) / norm(direction)` says. m and v as in AdamUpdate;
// (g, scalars) -> (w, m, v); correction as there.
struct LambUpdate : ElementwiseUpdate {
  static constexpr std::string_view kName = "LambUpdate";
  static constexpr int kStates = 2;
  double eps = 1e-6, momentum2 = 0.999;

  // The direction before it is scaled; updates the moments.
  template <typename A>
  CAFFE_HOST_DEVICE inline A Direction(const UpdateScalars<A>& s, A g, A w, A* h) const {
    h[0] = s.momentum * h[0] + (A(1) - s.momentum) * g;
    h[1] = A(momentum2) * h[1] + A(1 - momentum2) * g * g;
    return DirectionOf(s, w, h);
  }
  // The same from moments that are up to date.
  template <typename A>
  CAFFE_HOST_DEVICE inline A DirectionOf(const UpdateScalars<A>& s, A w, const A* h) const {
    return s.correction * h[0] / (std::sqrt(h[1]) + A(eps)) + s.decay * w;
  }
};

}  // namespace caffe::ops
