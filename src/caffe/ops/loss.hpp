// Softmax, losses and accuracy.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <optional>
#include <string>

#include "caffe/host_device.hpp"
#include "caffe/ops/op.hpp"

namespace caffe::ops {

// A tensor as outer x classes x inner around the class axis.
struct ClassView {
  int64_t outer, classes, inner;
  ClassView(const Shape& shape, int axis)
      : outer(shape.count(0, axis)), classes(shape[axis]), inner(shape.count(axis + 1)) {}

  int64_t positions() const { return outer * inner; }
  // Index of class c's element at a position; a position counts outer and inner together.
  CAFFE_HOST_DEVICE int64_t At(int64_t position, int64_t c) const {
    return (position / inner * classes + c) * inner + position % inner;
  }
  // How many positions from this one on, at most `most`, have their numbers of a class next to each
  // other.
  int64_t WidthFrom(int64_t position, int64_t most) const {
    return std::min(most, inner - position % inner);
  }
};

// (x) -> (y):  exp(x - max) / sum along `axis`.
struct Softmax {
  static constexpr std::string_view kName = "Softmax";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
  static constexpr bool kInPlace = true;
  int axis = 1;
  std::string Attributes() const { return StrCat("axis ", axis); }
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc> outputs) const {
    return 5.0 * static_cast<double>(outputs[0].count());
  }
};

// (y, dy) -> (dx):  dx = y * (dy - sum of dy * y along `axis`).
struct SoftmaxGrad {
  static constexpr std::string_view kName = "SoftmaxGrad";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
  int axis = 1;
};

// How a sum of losses is normalized; numbers as in LossParameter.NormalizationMode.
enum class Normalization { kFull = 0, kValid = 1, kBatchSize = 2, kNone = 3, kPreFixed = 1003 };

struct LabelRule {
  int axis = 1;                     // the class axis
  std::optional<int> ignore_label;  // items with this label are not counted
  Normalization normalization = Normalization::kValid;
  float pre_fixed_normalizer = 1;

  // Divisor for `outer` items of `inner` positions; `valid` positions are not ignored. At least 1.
  CAFFE_HOST_DEVICE double Divisor(int64_t outer, int64_t inner, int64_t valid) const {
    if (normalization == Normalization::kPreFixed) return pre_fixed_normalizer;
    const int64_t count = normalization == Normalization::kFull        ? outer * inner
                          : normalization == Normalization::kValid     ? valid
                          : normalization == Normalization::kBatchSize ? outer
                                                                       : 1;
    return static_cast<double>(std::max<int64_t>(1, count));
  }
};

CAFFE_HOST_DEVICE inline bool IsIgnored(const std::optional<int>& ignore_label, int64_t label) {
  return ignore_label && label == *ignore_label;
}

// Focal loss of a position at which the label's class has probability p (Lin et al. 2017, "Focal
// loss for dense object detection"): -alpha (1 - p)^gamma log p, or with is_linear FL* of the
// appendix: -alpha log(sigmoid(gamma x + beta)) / gamma, where sigmoid(x) = p.
struct Focus {
  float gamma = 0, alpha = 1;
  bool is_linear = false;
  float beta = 0;

  CAFFE_HOST_DEVICE inline double Loss(double p) const {
    if (!is_linear) return -Weight(p) * std::log(p);
    const double z = Linear(p);
    return alpha * (std::log1p(std::exp(-std::abs(z))) + std::max(-z, 0.0)) / gamma;
  }
  // dLoss(p) / ds = Slope(p) (p' - target) for scores s with softmax p'.
  CAFFE_HOST_DEVICE inline double Slope(double p) const {
    if (is_linear) return alpha / (1 + std::exp(Linear(p))) / Rest(p);
    const double log_p = std::log(p), g = static_cast<double>(gamma);
    return gamma == 0 || log_p == 0 ? Weight(p)
                                    : Weight(p) - alpha * g * p * std::pow(1 - p, g - 1) * log_p;
  }

 private:
  CAFFE_HOST_DEVICE inline double Weight(double p) const {
    return gamma == 0 ? alpha : alpha * std::pow(1 - p, static_cast<double>(gamma));
  }
  CAFFE_HOST_DEVICE inline double Linear(double p) const {
    return gamma * (std::log(p) - std::log(Rest(p))) + beta;
  }
  // Positive, so that a position with p = 1 has a finite loss and slope.
  CAFFE_HOST_DEVICE static inline double Rest(double p) { return std::max(1 - p, DBL_EPSILON); }
};

// (p, label[, weight]) -> (loss):  loss = sum of weight[label] * Focus::Loss(max(p[label],
// FLT_MIN)) / divisor. weight has an element for each class; without it all are 1.
struct SoftmaxLoss {
  static constexpr std::string_view kName = "SoftmaxLoss";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
  static constexpr OperandSet kExactInputs = {1};
  LabelRule rule;
  Focus focus = {};
};

// (p, label, dloss[, weight]) -> (dx):  dx = dloss * weight[label] * Slope(p[label]) * (p - target)
// / divisor; 0 where ignored.
struct SoftmaxLossGrad {
  static constexpr std::string_view kName = "SoftmaxLossGrad";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
  static constexpr bool kInPlace = true;
  LabelRule rule;
  float label_smoothing = 0;
  Focus focus = {};

  // Targets of the label's class and of each other class. NVCaffe spreads the smoothing over all
  // other numbers of an item, not only over the classes at one position.
  double target() const { return 1 - static_cast<double>(label_smoothing); }
  double target_of_others(int64_t classes, int64_t inner) const {
    const int64_t others = classes * inner - 1;
    return others > 0 ? static_cast<double>(label_smoothing) / static_cast<double>(others) : 0;
  }
  std::string Attributes() const {
    return label_smoothing == 0 ? "" : StrCat("label smoothing ", label_smoothing);
  }
};

// (a, b) -> (loss):  loss = sum (a - b)^2 / (2 N), N = extent of axis 0.
struct EuclideanLoss {
  static constexpr std::string_view kName = "EuclideanLoss";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
};

// (a, b, dloss) -> (dx):  dx = sign * dloss * (a - b) / N.
struct EuclideanLossGrad {
  static constexpr std::string_view kName = "EuclideanLossGrad";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
  int sign = 1;
};

// (scores, label) -> (accuracy[, per_class]):  an item is right if its label's score is finite and
// fewer than top_k other classes score at least as much or NaN. 0 if every item is ignored; a class
// without items has 0.
struct Accuracy {
  static constexpr std::string_view kName = "Accuracy";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
  static constexpr OperandSet kExactInputs = {1};
  int axis = 1;
  int top_k = 1;
  std::optional<int> ignore_label;
  // Counts as BVLC Caffe: a NaN neither beats a score nor is beaten.
  bool nan_is_right = false;

  template <typename Score>
  CAFFE_HOST_DEVICE inline bool CanBeRight(Score score) const {
    return nan_is_right || std::isfinite(score);
  }
  // True if another class's score is at least the label's, or cannot be compared with it.
  template <typename Score>
  CAFFE_HOST_DEVICE inline bool Beats(Score other, Score score) const {
    return nan_is_right ? other >= score : !(other < score);
  }
};

}  // namespace caffe::ops
