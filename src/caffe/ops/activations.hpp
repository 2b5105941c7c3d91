// Pointwise ops with parameters: activations, powers and exponentials.
#pragma once

#include "caffe/ops/pointwise.hpp"

namespace caffe::ops {

// (x) -> (y):  y = |x|.
struct Abs : UnaryPointwise {
  static constexpr std::string_view kName = "Abs";
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x) const {
    return x < A(0) ? -x : x;
  }
};

// (x, dy) -> (dx):  dx = dy * sign(x), 0 at 0.
struct AbsGrad : BinaryPointwise {
  static constexpr std::string_view kName = "AbsGrad";
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x, A dy) const {
    return x > A(0) ? dy : x < A(0) ? -dy : A(0);
  }
};

// (x) -> (y):  y = lambda * x for x > 0, lambda * alpha * (exp(x) - 1) otherwise (Clevert et al.
// 2016; with lambda the scaled form of Klambauer et al. 2017).
struct Elu : UnaryPointwise {
  static constexpr std::string_view kName = "Elu";
  float alpha = 1, lambda = 1;

  Elu(float alpha, float lambda) : alpha(alpha), lambda(lambda) {}
  std::string Attributes() const { return StrCat("alpha ", alpha, ", lambda ", lambda); }
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x) const {
    return x > A(0) ? A(lambda) * x : A(lambda) * A(alpha) * (std::exp(x) - A(1));
  }
};

// (x, dy) -> (dx)
struct EluGrad : BinaryPointwise {
  static constexpr std::string_view kName = "EluGrad";
  float alpha = 1, lambda = 1;

  EluGrad(float alpha, float lambda) : alpha(alpha), lambda(lambda) {}
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x, A dy) const {
    return A(lambda) * (x > A(0) ? dy : dy * A(alpha) * std::exp(x));
  }
};

// log(1 + u) for u >= 0, with the digits of u that 1 + u loses.
template <typename A>
CAFFE_HOST_DEVICE inline A LogOfOnePlus(A u) {
  const A sum = A(1) + u;
  return std::log(sum) + (u - (sum - A(1))) / sum;
}

// (x) -> (y):  y = log(1 + exp(x)), in the form that does not overflow.
struct Bnll : UnaryPointwise {
  static constexpr std::string_view kName = "Bnll";
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x) const {
    return (x > A(0) ? x : A(0)) + LogOfOnePlus(std::exp(x > A(0) ? -x : x));
  }
};

// (x, dy) -> (dx):  dx = dy * e / (1 + e), e = exp(min(x, 50)).
struct BnllGrad : BinaryPointwise {
  static constexpr std::string_view kName = "BnllGrad";
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x, A dy) const {
    const A e = std::exp(x > A(50) ? A(50) : x);
    return dy * e / (e + A(1));
  }
};

// (x) -> (y):  y = x * sigmoid(beta * x) (Ramachandran et al. 2017).
struct Swish : UnaryPointwise {
  static constexpr std::string_view kName = "Swish";
  float beta = 1;

  explicit Swish(float beta) : beta(beta) {}
  std::string Attributes() const { return StrCat("beta ", beta); }
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x) const {
    return x * Sigmoid{}.Apply(A(beta) * x);
  }
};

// (x, dy) -> (dx):  dx = dy * (beta * y + sigmoid(beta * x) * (1 - beta * y)).
struct SwishGrad : BinaryPointwise {
  static constexpr std::string_view kName = "SwishGrad";
  float beta = 1;

  explicit SwishGrad(float beta) : beta(beta) {}
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x, A dy) const {
    const A s = Sigmoid{}.Apply(A(beta) * x), beta_y = A(beta) * x * s;
    return dy * (beta_y + s * (A(1) - beta_y));
  }
};

// (x) -> (y):  y = alpha * x + beta limited to [0, 1].
struct HardSigmoid : UnaryPointwise {
  static constexpr std::string_view kName = "HardSigmoid";
  float alpha = 0.2f, beta = 0.5f;

  HardSigmoid(float alpha, float beta) : alpha(alpha), beta(beta) {}
  std::string Attributes() const { return StrCat("alpha ", alpha, ", beta ", beta); }
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x) const {
    const A line = A(alpha) * x + A(beta);
    return line < A(0) ? A(0) : line > A(1) ? A(1) : line;
  }
};

// (x, dy) -> (dx):  dx = dy * alpha between the limits, 0 at them and outside.
struct HardSigmoidGrad : BinaryPointwise {
  static constexpr std::string_view kName = "HardSigmoidGrad";
  float alpha = 0.2f, beta = 0.5f;

  HardSigmoidGrad(float alpha, float beta) : alpha(alpha), beta(beta) {}
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x, A dy) const {
    const A line = A(alpha) * x + A(beta);
    return line > A(0) && line < A(1) ? dy * A(alpha) : A(0);
  }
};

// (x) -> (y):  y = x * min(6, max(0, x + 3)) / 6 (Howard et al. 2019).
struct HardSwish : UnaryPointwise {
  static constexpr std::string_view kName = "HardSwish";
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x) const {
    return x <= A(-3) ? A(0) : x >= A(3) ? x : x * (x + A(3)) / A(6);
  }
};

// (x, dy) -> (dx)
struct HardSwishGrad : BinaryPointwise {
  static constexpr std::string_view kName = "HardSwishGrad";
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x, A dy) const {
    return x <= A(-3) ? A(0) : x >= A(3) ? dy : dy * (A(2) * x + A(3)) / A(6);
  }
};

// (x) -> (y):  y = x * tanh(log(1 + exp(x))) (Misra 2019). With e = exp(x) and n = e * (e + 2) the
// tanh is n / (n + 2). Above x = 20 it is 1 in double, and n would overflow in float.
struct Mish : UnaryPointwise {
  static constexpr std::string_view kName = "Mish";
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x) const {
    const A e = std::exp(x < A(20) ? x : A(20)), n = e * (e + A(2));
    return x * (n / (n + A(2)));
  }
};

// (x, dy) -> (dx):  dx = dy * (t + x * (1 - t^2) * sigmoid(x)), t being the tanh.
struct MishGrad : BinaryPointwise {
  static constexpr std::string_view kName = "MishGrad";
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x, A dy) const {
    const A e = std::exp(x < A(20) ? x : A(20)), n = e * (e + A(2)), m = n + A(2);
    const A slope = A(4) * (n + A(1)) / (m * m);  // 1 - t^2
    return dy * (n / m + x * slope * e / (e + A(1)));
  }
};

// (x) -> (y):  y = x * P(X <= x), X being normally distributed (Hendrycks and Gimpel 2016).
struct Gelu : UnaryPointwise {
  static constexpr std::string_view kName = "Gelu";
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x) const {
    return x * Probability(x);
  }
  template <typename A>
  CAFFE_HOST_DEVICE static inline A Probability(A x) {
    return A(0.5) * std::erfc(A(-0.70710678118654752) * x);  // sqrt(1/2)
  }
};

// (x, dy) -> (dx):  dx = dy * (P(X <= x) + x * density(x)).
struct GeluGrad : BinaryPointwise {
  static constexpr std::string_view kName = "GeluGrad";
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x, A dy) const {
    const A density = A(0.39894228040143268) * std::exp(A(-0.5) * x * x);  // sqrt(1 / (2 pi))
    return dy * (Gelu::Probability(x) + x * density);
  }
};

// (x) -> (y):  y = x limited to [least, most].
struct Clip : UnaryPointwise {
  static constexpr std::string_view kName = "Clip";
  float least = 0, most = 0;

  Clip(float least, float most) : least(least), most(most) {}
  std::string Attributes() const { return StrCat("[", least, ", ", most, "]"); }
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x) const {
    return x < A(least) ? A(least) : x > A(most) ? A(most) : x;
  }
};

// (x, dy) -> (dx):  dy within [least, most], both included, 0 outside.
struct ClipGrad : BinaryPointwise {
  static constexpr std::string_view kName = "ClipGrad";
  float least = 0, most = 0;

  ClipGrad(float least, float most) : least(least), most(most) {}
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x, A dy) const {
    return x >= A(least) && x <= A(most) ? dy : A(0);
  }
};

// (x) -> (y):  y = 1 for x > threshold, 0 otherwise.
struct Threshold : UnaryPointwise {
  static constexpr std::string_view kName = "Threshold";
  float threshold = 0;

  explicit Threshold(float threshold) : threshold(threshold) {}
  std::string Attributes() const { return StrCat("threshold ", threshold); }
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x) const {
    return x > A(threshold) ? A(1) : A(0);
  }
};

// base^power with fast paths for the powers that nets use.
template <typename A>
CAFFE_HOST_DEVICE inline A RaisedTo(A base, A power) {
  if (power == A(0)) return A(1);
  if (power == A(1)) return base;
  if (power == A(2)) return base * base;
  if (power == A(0.5)) return std::sqrt(base);
  return std::pow(base, power);
}

// (x) -> (y):  y = (shift + scale * x)^power.
struct Power : UnaryPointwise {
  static constexpr std::string_view kName = "Power";
  float power = 1, scale = 1, shift = 0;

  Power(float power, float scale, float shift) : power(power), scale(scale), shift(shift) {}
  std::string Attributes() const { return StrCat("(", shift, " + ", scale, " x)^", power); }
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x) const {
    return RaisedTo(A(shift) + A(scale) * x, A(power));
  }
};

// (x, dy) -> (dx):  dx = dy * scale * power * (shift + scale * x)^(power - 1); 0 where y is
// constant.
struct PowerGrad : BinaryPointwise {
  static constexpr std::string_view kName = "PowerGrad";
  float power = 1, scale = 1, shift = 0;

  PowerGrad(float power, float scale, float shift) : power(power), scale(scale), shift(shift) {}
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x, A dy) const {
    const A factor = A(scale) * A(power);
    if (factor == A(0)) return A(0);
    return dy * factor * RaisedTo(A(shift) + A(scale) * x, A(power) - A(1));
  }
};

// (x) -> (y):  y = exp(shift + scale * x).
struct Exp : UnaryPointwise {
  static constexpr std::string_view kName = "Exp";
  double scale = 1, shift = 0;

  Exp(double scale, double shift) : scale(scale), shift(shift) {}
  std::string Attributes() const { return StrCat("exp(", shift, " + ", scale, " x)"); }
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x) const {
    return std::exp(A(shift) + A(scale) * x);
  }
};

// (y, dy) -> (dx):  dx = dy * scale * y.
struct ExpGrad : BinaryPointwise {
  static constexpr std::string_view kName = "ExpGrad";
  double scale = 1;

  explicit ExpGrad(double scale) : scale(scale) {}
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A y, A dy) const {
    return dy * A(scale) * y;
  }
};

// (x) -> (y):  y = factor * log(shift + scale * x).
struct Log : UnaryPointwise {
  static constexpr std::string_view kName = "Log";
  double factor = 1;
  float scale = 1, shift = 0;

  Log(double factor, float scale, float shift) : factor(factor), scale(scale), shift(shift) {}
  std::string Attributes() const { return StrCat(factor, " * log(", shift, " + ", scale, " x)"); }
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x) const {
    return A(factor) * std::log(A(shift) + A(scale) * x);
  }
};

// (x, dy) -> (dx):  dx = dy * factor * scale / (shift + scale * x).
struct LogGrad : BinaryPointwise {
  static constexpr std::string_view kName = "LogGrad";
  double factor = 1;
  float scale = 1, shift = 0;

  LogGrad(double factor, float scale, float shift) : factor(factor), scale(scale), shift(shift) {}
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x, A dy) const {
    return dy * A(factor) * A(scale) / (A(shift) + A(scale) * x);
  }
};

}  // namespace caffe::ops
