// Optimizers: the formula that updates one element of a parameter, shared by every device.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "caffe/ops/pointwise.hpp"
#include "caffe/ops/update.hpp"

namespace caffe::ops {

// Scalars that all elements of one parameter share in one step. Delta() gets the gradient
// gradient_scale * g + l2 * w + l1 * sign(w).
template <typename A>
struct UpdateScalars {
  A rate;      // learning rate times the parameter's lr_mult
  A momentum;  // from the step's policy
  A gradient_scale;
  A l1, l2;
  A decay;       // weight decay times decay_mult, for optimizers that apply it themselves
  A correction;  // specific to the optimizer, as Adam's bias correction
};

enum class Regularization { kNone, kL1, kL2 };

// An optimizer's options for one parameter.
struct ElementwiseUpdate {
  Regularization regularization = Regularization::kL2;
  double lr_mult = 1, decay_mult = 1;
};

// One optimizer step for n parameters in a single pass over memory:
// (g_0, ..., g_n-1, step, decision) -> (w_0, states of 0..., w_1, states of 1..., ...), w and
// states updated in place:  w = w - Delta(...). step holds kStepNumbers doubles; the decision, from
// DecideStep, may be absent. Further outputs get copies of updated weights in another type or
// layout; a skipped step does not write them.
template <typename Rule>
struct ParameterUpdate {
  static constexpr std::string_view kName = Rule::kName;
  static constexpr NumericRule kNumericRule = NumericRule::kFloat;
  static constexpr int kOutputs = 1 + Rule::kStates;  // per parameter
  static constexpr int kMostCopies = 2;               // per parameter
  std::vector<Rule> each;                             // one per parameter
  std::vector<int> copies;  // parameter of each further output; at most kMostCopies equal entries

  std::string Attributes() const {
    return StrCat(each.size(), " parameters, ", copies.size(), " copies");
  }
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc> outputs) const {
    double flops = 0;
    for (size_t i = 0; i < each.size(); ++i)
      flops += 10.0 * static_cast<double>(outputs[i * kOutputs].count());
    return flops;
  }
};

// Scalars of parameter i. `decision` may be null.
template <typename A>
CAFFE_HOST_DEVICE inline UpdateScalars<A> ScalarsOf(const ElementwiseUpdate& op, const double* step,
                                                    const double* decision, size_t i) {
  const bool decides = decision != nullptr;
  const double rate = decides ? decision[kFirstRate + i] : step[kRate];
  const A decay = static_cast<A>(step[kWeightDecay] * op.decay_mult);
  UpdateScalars<A> s{};
  s.rate = static_cast<A>(rate * op.lr_mult);
  s.momentum = static_cast<A>(step[kMomentum]);
  s.gradient_scale = static_cast<A>(decides ? decision[kTotalFactor] : step[kGradientFactor]);
  s.correction = static_cast<A>(step[kCorrection]);
  s.decay = decay;
  if (op.regularization == Regularization::kL1) s.l1 = decay;
  if (op.regularization == Regularization::kL2) s.l2 = decay;
  return s;
}

// True if there is a decision and it skips the step.
CAFFE_HOST_DEVICE inline bool Skips(const double* decision) {
  return decision != nullptr && decision[kTakesStep] == 0;
}

// The gradient that Delta() gets.
template <typename A>
CAFFE_HOST_DEVICE inline A RegularizedGradient(const UpdateScalars<A>& s, A g, A w) {
  return s.gradient_scale * g + s.l2 * w + s.l1 * (A(w > 0) - A(w < 0));
}

// Polyak 1964:  h = momentum * h + rate * g;  delta = h
// `decoupled` adds rate * decay * w to delta, as NVCaffe's regularization_type WD does.
struct SgdUpdate : ElementwiseUpdate {
  static constexpr std::string_view kName = "SgdUpdate";
  static constexpr int kStates = 1;
  bool decoupled = false;

  template <typename A>
  CAFFE_HOST_DEVICE inline A Delta(const UpdateScalars<A>& s, A g, A w, A* h) const {
    h[0] = s.momentum * h[0] + s.rate * g;
    return decoupled ? h[0] + s.rate * s.decay * w : h[0];
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

// Chen et al. 2023:  delta = rate * (sign(m h + (1 - m) g) + decay * w);  h = b h + (1 - b) g
// with m = momentum and b = momentum2.
struct LionUpdate : ElementwiseUpdate {
  static constexpr std::string_view kName = "LionUpdate";
  static constexpr int kStates = 1;
  double momentum2 = 0.99;

  template <typename A>
  CAFFE_HOST_DEVICE inline A Delta(const UpdateScalars<A>& s, A g, A w, A* h) const {
    const A direction = s.momentum * h[0] + (A(1) - s.momentum) * g;
    h[0] = A(momentum2) * h[0] + A(1 - momentum2) * g;
    return s.rate * (A(direction > A(0)) - A(direction < A(0)) + s.decay * w);
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

// Robust adaptive secant method (Gulcehre, Sotelo, Moczulski, Bengio 2017, arXiv 1703.00788),
// element by element. With d the last step, a = g - (last g), and averages E over a memory of t
// steps:
//   t = (1 - E[d]^2 / E[d^2]) t + 1, or 2.2 after an outlier (g or a further than two standard
//     deviations from its mean);  E[x] = (1 - 1/t) E[x] + x / t
//   c = E[(g - last g)(g - E[g])] / E[(g - E[g])(last g - E[g])], within 0 .. 1.8
//   g' = (g + c E[g]) / (1 + c)                    (less noise)
//   step = sqrt(E[d^2]) / sqrt(E[a^2]) - (E[a d] - E[a] E[d]) / E[a^2]
//   delta = rate * step * g'
// The first step has the length sqrt(eps). The paper also divides the gradient by its block's norm;
// the step's length does not depend on that, so it is omitted.
struct AdaSecantUpdate : ElementwiseUpdate {
  static constexpr std::string_view kName = "AdaSecantUpdate";
  enum State {
    kMemory,
    kLastGradient,
    kLastStep,
    kGradient,
    kGradientSquare,
    kStep,
    kStepSquare,
    kCurvature,
    kCurvatureSquare,
    kCurvatureStep,
    kNoise,
    kCorrelation
  };
  static constexpr int kStates = 12;
  double eps = 1e-8;

  template <typename A>
  CAFFE_HOST_DEVICE inline A Delta(const UpdateScalars<A>& s, A g, A, A* h) const {
    const A tiny = A(1e-30);
    if (h[kMemory] == A(0)) return FirstDelta(s, g, h);
    const A d = h[kLastStep], a = g - h[kLastGradient];
    const A memory =
        IsOutlier(g, h[kGradient], h[kGradientSquare]) ||
                IsOutlier(a, h[kCurvature], h[kCurvatureSquare])
            ? A(2.2)
            : (A(1) - h[kStep] * h[kStep] / (h[kStepSquare] + tiny)) * h[kMemory] + A(1);
    h[kMemory] = memory < A(1.5) ? A(1.5) : memory > A(1e8) ? A(1e8) : memory;
    const A part = A(1) / h[kMemory];
    h[kNoise] += part * (a * (g - h[kGradient]) - h[kNoise]);
    h[kCorrelation] +=
        part * ((g - h[kGradient]) * (h[kLastGradient] - h[kGradient]) - h[kCorrelation]);
    h[kGradient] += part * (g - h[kGradient]);
    h[kGradientSquare] += part * (g * g - h[kGradientSquare]);
    h[kStep] += part * (d - h[kStep]);
    h[kStepSquare] += part * (d * d - h[kStepSquare]);
    h[kCurvature] += part * (a - h[kCurvature]);
    h[kCurvatureSquare] += part * (a * a - h[kCurvatureSquare]);
    h[kCurvatureStep] += part * (a * d - h[kCurvatureStep]);
    A c = h[kCorrelation] > tiny ? h[kNoise] / h[kCorrelation] : A(1.8);
    c = c < A(0) ? A(0) : c > A(1.8) ? A(1.8) : c;
    const A corrected = (g + c * h[kGradient]) / (A(1) + c);
    const A square = h[kCurvatureSquare] + tiny;
    const A covariance = h[kCurvatureStep] - h[kCurvature] * h[kStep];
    const A step = std::sqrt(h[kStepSquare] / square) - covariance / square;
    const A delta = s.rate * (step > A(0) ? step : A(0)) * corrected;
    h[kLastGradient] = g;
    h[kLastStep] = -delta;
    return delta;
  }

 private:
  template <typename A>
  CAFFE_HOST_DEVICE static inline bool IsOutlier(A x, A mean, A square) {
    const A variance = square - mean * mean;
    return (x - mean) * (x - mean) > A(4) * (variance > A(0) ? variance : A(0));
  }

  template <typename A>
  CAFFE_HOST_DEVICE inline A FirstDelta(const UpdateScalars<A>& s, A g, A* h) const {
    const A delta = s.rate * A(std::sqrt(eps)) * (A(g > A(0)) - A(g < A(0)));
    h[kMemory] = A(2.2);
    h[kLastGradient] = h[kGradient] = g;
    h[kGradientSquare] = g * g;
    h[kLastStep] = h[kStep] = -delta;
    h[kStepSquare] = delta * delta;
    return delta;
  }
};

// Layer-wise adaptive moments (You et al. 2020): Adam's direction with bias correction, plus decay
// * w, scaled by `norm(w) / norm(direction)`. m, v and correction as in AdamUpdate.
struct LambUpdate : ElementwiseUpdate {
  static constexpr std::string_view kName = "LambUpdate";
  static constexpr int kStates = 2;
  double eps = 1e-6, momentum2 = 0.999;

  // The direction before scaling; updates the moments.
  template <typename A>
  CAFFE_HOST_DEVICE inline A Direction(const UpdateScalars<A>& s, A g, A w, A* h) const {
    h[0] = s.momentum * h[0] + (A(1) - s.momentum) * g;
    h[1] = A(momentum2) * h[1] + A(1 - momentum2) * g * g;
    return DirectionOf(s, w, h);
  }
  // The same from moments that have been updated.
  template <typename A>
  CAFFE_HOST_DEVICE inline A DirectionOf(const UpdateScalars<A>& s, A w, const A* h) const {
    return s.correction * h[0] / (std::sqrt(h[1]) + A(eps)) + s.decay * w;
  }
};

}  // namespace caffe::ops
