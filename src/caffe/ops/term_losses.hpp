// Losses that are sums of terms, one per item or position: ops for the terms, their sum and
// gradients.
#pragma once

#include <cmath>

#include "caffe/ops/each_element.hpp"

namespace caffe::ops {

// Base of the ops below except SumOfTerms.
struct TermOp {
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
};

// (terms[, divisor]) -> (loss):  coefficient * sum of terms / divisor. A divisor of 0 counts as 1.
struct SumOfTerms {
  static constexpr std::string_view kName = "SumOfTerms";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
  double coefficient = 1;
  std::string Attributes() const { return StrCat("coefficient ", coefficient); }
};

// (g, dloss) -> (dx):  dloss * g, where g was saved by forward while it computed the loss.
struct SavedGrad : TermOp {
  static constexpr std::string_view kName = "SavedGrad";
  static constexpr bool kInPlace = true;
  static constexpr int kInputs = 2;

  template <typename A, typename G, typename Dloss>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const G& g, const Dloss& dloss) const {
    return dloss[0] * g[i];
  }
};

// Squared distance between row `row_of_x` of x and row `row_of_y` of y; rows have `width` elements.
template <typename A, typename X, typename Y>
CAFFE_HOST_DEVICE inline A SquaredDistance(const X& x, int64_t row_of_x, const Y& y,
                                           int64_t row_of_y, int64_t width) {
  A sum = 0;
  for (int64_t k = 0; k < width; ++k) {
    const A d = x[row_of_x * width + k] - y[row_of_y * width + k];
    sum += d * d;
  }
  return sum;
}

// (a, p, n) -> (terms):  rows of features; max(0, margin + |a - p|^2 - |a - n|^2) (Schroff et al.
// 2015, "FaceNet").
struct TripletTerms : TermOp {
  static constexpr std::string_view kName = "TripletTerms";
  static constexpr int kInputs = 3;
  int64_t width = 0;
  float margin = 1;

  TripletTerms(int64_t width, float margin) : width(width), margin(margin) {}

  template <typename A, typename X>
  CAFFE_HOST_DEVICE inline A Element(int64_t row, const X& a, const X& p, const X& n) const {
    const A term = margin + SquaredDistance<A>(a, row, p, row, width) -
                   SquaredDistance<A>(a, row, n, row, width);
    return term < 0 ? A(0) : term;
  }
};

// (to, from, terms, dloss) -> (dx):  coefficient * dloss * (to - from) in rows with a nonzero term.
struct TripletGrad : TermOp {
  static constexpr std::string_view kName = "TripletGrad";
  static constexpr int kInputs = 4;
  int64_t width = 0;
  double coefficient = 1;

  TripletGrad(int64_t width, double coefficient) : width(width), coefficient(coefficient) {}

  template <typename A, typename X>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const X& to, const X& from, const X& terms,
                                     const X& dloss) const {
    return terms[i / width] == 0 ? A(0) : A(coefficient) * dloss[0] * (to[i] - from[i]);
  }
};

// Base of centre losses: labels are row indexes of `centers`, which has `classes` rows.
struct CenterOp : TermOp {
  static constexpr OperandSet kExactInputs = {1};
  int64_t width = 0, classes = 0;
  double coefficient = 1;

  CenterOp(int64_t width, int64_t classes, double coefficient)
      : width(width), classes(classes), coefficient(coefficient) {}

  // The class of a row; -1 if its label is out of range.
  template <typename Labels>
  CAFFE_HOST_DEVICE inline int64_t ClassAt(const Labels& labels, int64_t row) const {
    const double label = labels[row];
    return label >= 0 && label < static_cast<double>(classes) ? static_cast<int64_t>(label) : -1;
  }
};

// (x, labels, centers) -> (terms):  |x - center of its class|^2; NaN for a label out of range on
// devices whose kernels cannot throw (Wen et al. 2016).
struct CenterTerms : CenterOp {
  static constexpr std::string_view kName = "CenterTerms";
  static constexpr int kInputs = 3;
  using CenterOp::CenterOp;

  template <typename A, typename X, typename Labels, typename Centers>
  CAFFE_HOST_DEVICE inline A Element(int64_t row, const X& x, const Labels& labels,
                                     const Centers& centers) const {
    const int64_t label = ClassAt(labels, row);
    return label < 0 ? A(NAN) : SquaredDistance<A>(x, row, centers, label, width);
  }
};

// (x, labels, centers, dloss) -> (dx):  coefficient * dloss * (x - center).
struct CenterGrad : CenterOp {
  static constexpr std::string_view kName = "CenterGrad";
  static constexpr int kInputs = 4;
  using CenterOp::CenterOp;

  template <typename A, typename X, typename Labels, typename Centers, typename Dloss>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const X& x, const Labels& labels,
                                     const Centers& centers, const Dloss& dloss) const {
    const int64_t label = ClassAt(labels, i / width);
    if (label < 0) return A(NAN);
    return A(coefficient) * dloss[0] * (x[i] - centers[label * width + i % width]);
  }
};

// (x, labels, centers, dloss) -> (dcenters):  coefficient * dloss * sum of (center - x) over the
// rows of a class / (1 + number of these rows).
struct CenterStep : CenterOp {
  static constexpr std::string_view kName = "CenterStep";
  static constexpr int kInputs = 4;
  int64_t rows = 0;

  CenterStep(int64_t rows, int64_t width, int64_t classes, double coefficient)
      : CenterOp(width, classes, coefficient), rows(rows) {}

  template <typename A, typename X, typename Labels, typename Centers, typename Dloss>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const X& x, const Labels& labels,
                                     const Centers& centers, const Dloss& dloss) const {
    A sum = 0, count = 1;
    for (int64_t row = 0; row < rows; ++row) {
      if (ClassAt(labels, row) != i / width) continue;
      sum += centers[i] - x[row * width + i % width];
      count += 1;
    }
    return A(coefficient) * dloss[0] * sum / count;
  }
};

// Base of the Kullback-Leibler divergence of targets t from log-probabilities x; with `log_target`,
// t is the logarithm of the targets.
struct KLDivOp : TermOp {
  bool log_target = false;

  explicit KLDivOp(bool log_target) : log_target(log_target) {}

  CAFFE_HOST_DEVICE inline double Target(double t) const { return log_target ? std::exp(t) : t; }
};

// (x, t) -> (terms):  target * (log(target) - x), which is 0 for a target of 0.
struct KLDivTerms : KLDivOp {
  static constexpr std::string_view kName = "KLDivTerms";
  static constexpr int kInputs = 2;
  using KLDivOp::KLDivOp;

  template <typename A, typename X, typename T>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const X& x, const T& t) const {
    const A target = Target(t[i]);
    return target == 0 ? A(0) : target * ((log_target ? t[i] : std::log(target)) - x[i]);
  }
};

// (t, dloss) -> (dx):  -coefficient * dloss * target.
struct KLDivGrad : KLDivOp {
  static constexpr std::string_view kName = "KLDivGrad";
  static constexpr int kInputs = 2;
  double coefficient = 1;

  KLDivGrad(bool log_target, double coefficient) : KLDivOp(log_target), coefficient(coefficient) {}

  template <typename A, typename T, typename Dloss>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const T& t, const Dloss& dloss) const {
    return A(-coefficient) * dloss[0] * Target(t[i]);
  }
};

// Base of the Dice loss of a channel of an item with the scores p and the targets t: 1 - (2 overlap
// + smooth) / (area of p + area of t + smooth). 0 if the divisor is 0.
struct DiceOp : TermOp {
  double smooth = 1;
  bool squares = false;  // areas are sums of squares

  DiceOp(double smooth, bool squares) : smooth(smooth), squares(squares) {}
};

// (overlap, area of p, area of t) -> (terms):  an element for each channel of each item.
struct DiceTerms : DiceOp {
  static constexpr std::string_view kName = "DiceTerms";
  static constexpr int kInputs = 3;

  explicit DiceTerms(const DiceOp& options) : DiceOp(options) {}

  template <typename A, typename X>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const X& overlap, const X& of_p,
                                     const X& of_t) const {
    const A divisor = of_p[i] + of_t[i] + A(smooth);
    return divisor == 0 ? A(0) : 1 - (2 * overlap[i] + A(smooth)) / divisor;
  }
};

// (p, t, overlap, area of p, area of t, dloss) -> (dp):  coefficient * dloss times the derivative
// of the element's term; channels have `pixels` elements.
struct DiceGrad : DiceOp {
  static constexpr std::string_view kName = "DiceGrad";
  static constexpr int kInputs = 6;
  int64_t pixels = 1;
  double coefficient = 1;

  DiceGrad(const DiceOp& options, int64_t pixels, double coefficient)
      : DiceOp(options), pixels(pixels), coefficient(coefficient) {}

  template <typename A, typename X>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const X& p, const X& t, const X& overlap,
                                     const X& of_p, const X& of_t, const X& dloss) const {
    const int64_t channel = i / pixels;
    const A divisor = of_p[channel] + of_t[channel] + A(smooth);
    if (divisor == 0) return A(0);
    const A share = (2 * overlap[channel] + A(smooth)) / divisor;
    return A(coefficient) * dloss[0] * (share * (squares ? 2 * p[i] : A(1)) - 2 * t[i]) / divisor;
  }
};

// FlowNet's L1 loss. Unknown values are not counted: NaN in the ground truth b, or in the
// difference a if b is missing.
struct FlowOp : TermOp {
  int64_t channels = 1, inner = 1;
  bool per_location = false;  // uses the length of each position's vector, not each difference
  double scale = 1;           // factor of a vector's squares
  double epsilon = 0;         // added to a vector's squares
  double plateau = 0;         // smaller differences count as 0

  template <typename A, typename X, typename Y>
  CAFFE_HOST_DEVICE inline A Difference(const X& a, const Y& b, int64_t i) const {
    return b.is_present() ? a[i] - b[i] : a[i];
  }
  template <typename X, typename Y>
  CAFFE_HOST_DEVICE inline bool IsKnown(const X& a, const Y& b, int64_t i) const {
    const double x = b.is_present() ? b[i] : a[i];
    return x == x;
  }
  // Sum of squares of a position; 0 on the plateau.
  template <typename A, typename X, typename Y>
  CAFFE_HOST_DEVICE inline A Squares(const X& a, const Y& b, int64_t position) const {
    const int64_t first = position / inner * channels * inner + position % inner;
    A sum = 0;
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t i = first + c * inner;
      if (!IsKnown(a, b, i)) continue;
      const A d = Difference<A>(a, b, i);
      sum += A(scale) * d * d;
    }
    return sum < A(plateau * plateau) ? A(0) : sum;
  }
};

// (a, b) -> (terms):  b may be missing.
struct FlowTerms : FlowOp {
  static constexpr std::string_view kName = "FlowTerms";
  static constexpr int kInputs = 2;

  template <typename A, typename X, typename Y>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const X& a, const Y& b) const {
    if (per_location) return std::sqrt(Squares<A>(a, b, i) + A(epsilon));
    const A size = std::abs(Difference<A>(a, b, i));
    return !IsKnown(a, b, i) || size < A(plateau) ? A(0) : size;
  }
};

// (a, b) -> (terms):  1 for known values, else 0; b may be missing.
struct FlowNumbers : FlowOp {
  static constexpr std::string_view kName = "FlowNumbers";
  static constexpr int kInputs = 2;

  template <typename A, typename X, typename Y>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const X& a, const Y& b) const {
    return IsKnown(a, b, i) ? A(1) : A(0);
  }
};

// (a, b, divisor, dloss) -> (dx):  sign times the gradient of a; b may be missing.
struct FlowGrad : FlowOp {
  static constexpr std::string_view kName = "FlowGrad";
  static constexpr int kInputs = 4;
  double sign = 1;

  FlowGrad(const FlowOp& options, double sign) : FlowOp(options), sign(sign) {}

  template <typename A, typename X, typename Y, typename Divisor, typename Dloss>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const X& a, const Y& b, const Divisor& divisor,
                                     const Dloss& dloss) const {
    if (!IsKnown(a, b, i)) return A(0);
    const A d = Difference<A>(a, b, i);
    const A size = d < 0 ? -d : d;
    const A factor = A(sign) * dloss[0] / (divisor[0] == 0 ? A(1) : divisor[0]);
    if (!per_location) {
      return size < A(plateau) || size == 0 ? A(0) : factor * (d / size);  // NaN stays NaN
    }
    const A squares = Squares<A>(a, b, i / (channels * inner) * inner + i % inner);
    return squares == 0 ? A(0) : factor * A(scale) * d / std::sqrt(squares + A(epsilon));
  }
};

}  // namespace caffe::ops
