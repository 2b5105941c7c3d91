// Losses between two tensors of one shape.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>

#include "caffe/ops/loss.hpp"

namespace caffe::ops {

// (a, b) -> (loss):  loss = sum |a - b| / N, N = extent of axis 0.
struct L1Loss {
  static constexpr std::string_view kName = "L1Loss";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
};

// (a, b, dloss) -> (dx):  dx = sign * dloss * sign(a - b) / N.
struct L1LossGrad {
  static constexpr std::string_view kName = "L1LossGrad";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
  int sign = 1;
};

// (a, b[, w[, v]]) -> (loss):  d = w (a - b); loss = sum of v times sigma^2 d^2 / 2 if |d| < 1 /
// sigma^2, else |d| - 1 / (2 sigma^2), divided by divisor (Girshick 2015, "Fast R-CNN").
struct SmoothL1Loss {
  static constexpr std::string_view kName = "SmoothL1Loss";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
  float sigma = 1;
  std::optional<double> divisor = {};  // the number of items if absent

  CAFFE_HOST_DEVICE inline double Of(double d) const {
    const double square = static_cast<double>(sigma) * sigma, size = d < 0 ? -d : d;
    return size < 1 / square ? square * d * d / 2 : size - 0.5 / square;
  }
};

// (a, b, dloss[, w[, v]]) -> (dx):  dx = sign * dloss * v * w * (sigma^2 d limited to [-1, 1]) /
// divisor.
// Without `applies_weight` the factor w is omitted, as in NVCaffe; that is still the derivative for
// weights of 0 and 1.
struct SmoothL1LossGrad {
  static constexpr std::string_view kName = "SmoothL1LossGrad";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
  int sign = 1;
  float sigma = 1;
  bool applies_weight = false;
  std::optional<double> divisor = {};

  // `weight` is w.
  CAFFE_HOST_DEVICE inline double Of(double d, double weight) const {
    const double x = static_cast<double>(sigma) * sigma * d;
    return (applies_weight ? weight : 1) * (x < -1 ? -1 : x > 1 ? 1 : x);
  }
};

// The cross-entropy of sigmoid(x) with a target t, in a form that does not overflow, and its
// derivative. The share t of the loss has the factor positive_weight.
struct SigmoidCrossEntropy {
  double positive_weight = 1;

  CAFFE_HOST_DEVICE inline double Of(double x, double t) const {
    const double log_of_1_plus = std::log1p(std::exp(-std::abs(x)));
    if (positive_weight == 1) return log_of_1_plus - x * (t - (x >= 0 ? 1 : 0));
    return (1 - t) * x + Weight(t) * (log_of_1_plus + std::max(-x, 0.0));
  }
  CAFFE_HOST_DEVICE inline double Slope(double x, double t) const {
    const double sigmoid = 0.5 * std::tanh(0.5 * x) + 0.5;
    if (positive_weight == 1) return sigmoid - t;
    return Weight(t) * sigmoid - positive_weight * t;
  }

 private:
  CAFFE_HOST_DEVICE inline double Weight(double t) const { return 1 + (positive_weight - 1) * t; }
};

// (x, t) -> (loss):  the sum of cross-entropies / divisor. Targets whose integer part is the
// ignored label are not counted.
struct SigmoidCrossEntropyLoss {
  static constexpr std::string_view kName = "SigmoidCrossEntropyLoss";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
  static constexpr OperandSet kExactInputs = {1};
  LabelRule rule;
  SigmoidCrossEntropy cross_entropy = {};
};

// (x, t, dloss) -> (dx):  dx = dloss * Slope(x, t) / divisor; 0 where ignored.
struct SigmoidCrossEntropyLossGrad {
  static constexpr std::string_view kName = "SigmoidCrossEntropyLossGrad";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
  LabelRule rule;
  SigmoidCrossEntropy cross_entropy = {};
};

// (a, b, similar) -> (loss):  rows a, b at distance d; similar: d^2, else max(0, margin - d)^2
// (legacy: max(0, margin - d^2)); sum / (2 N) (Hadsell et al. 2006).
struct ContrastiveLoss {
  static constexpr std::string_view kName = "ContrastiveLoss";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
  static constexpr OperandSet kExactInputs = {2};
  float margin = 1;
  bool legacy = false;
};

// (a, b, similar, dloss) -> (dx), with `sign` -1 for b. A distance of 0 is guarded by 1e-4.
struct ContrastiveLossGrad {
  static constexpr std::string_view kName = "ContrastiveLossGrad";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
  float margin = 1;
  bool legacy = false;
  int sign = 1;
};

}  // namespace caffe::ops
