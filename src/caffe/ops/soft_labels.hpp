// Cross-entropy of softmax probabilities with distributions instead of labels.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <string>

#include "caffe/host_device.hpp"
#include "caffe/ops/loss.hpp"
#include "caffe/ops/op.hpp"

namespace caffe::ops {

// (p, t[, weight]) -> (loss):  loss = -sum of weight[c] * t * log(max(p, FLT_MIN)) / divisor. t has
// the shape of p; weight has an element for each class c, without it all are 1.
struct SoftLabelLoss {
  static constexpr std::string_view kName = "SoftLabelLoss";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
  static constexpr OperandSet kExactInputs = {1};
  LabelRule rule;

  CAFFE_HOST_DEVICE static inline double Term(double p, double weighted_share) {
    if (weighted_share == 0) return 0;
    return -weighted_share * std::log(p < FLT_MIN ? static_cast<double>(FLT_MIN) : p);
  }
};

// (p, t, dloss[, weight]) -> (dx):  the gradient of the scores with softmax p, that is, of
// SoftmaxLossGrad for each label times the label's share:
//   dx[c] = dloss * (p[c] * S - (1 - e - o) * w[c] * t[c] - o * S) / divisor
// with S = sum of w * t at the position, e the label smoothing, and o its part for each other
// number of the item.
struct SoftLabelLossGrad {
  static constexpr std::string_view kName = "SoftLabelLossGrad";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
  static constexpr bool kInPlace = true;
  SoftmaxLossGrad hard;  // for a single label

  std::string Attributes() const { return hard.Attributes(); }

  // Factors of the formula that depend on the shape.
  struct Factors {
    double label, others;
    CAFFE_HOST_DEVICE inline double Of(double p, double weighted_share, double sum) const {
      return p * sum - label * weighted_share - others * sum;
    }
  };
  Factors FactorsOf(const ClassView& view) const {
    const double others = hard.target_of_others(view.classes, view.inner);
    return {hard.target() - others, others};
  }
};

}  // namespace caffe::ops
