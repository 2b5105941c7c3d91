// Losses between scores and integer labels, besides softmax.
#pragma once

#include "caffe/ops/loss.hpp"

namespace caffe::ops {

// (x, label) -> (loss):  one-vs-all hinge loss. x is N rows of classes; margin m = max(0, 1 - s x)
// with s = 1 at the label and -1 elsewhere; loss = sum of m (`squared`: of m^2) / N.
struct HingeLoss {
  static constexpr std::string_view kName = "HingeLoss";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
  static constexpr OperandSet kExactInputs = {1};
  bool squared = false;
};

// (x, label, dloss) -> (dx)
struct HingeLossGrad {
  static constexpr std::string_view kName = "HingeLossGrad";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
  bool squared = false;
};

// (p, label) -> (loss):  p is N rows of probabilities; loss = -sum log max(p[label], 1e-20) / N.
struct MultinomialLogisticLoss {
  static constexpr std::string_view kName = "MultinomialLogisticLoss";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
  static constexpr OperandSet kExactInputs = {1};
};

// (p, label, dloss) -> (dp)
struct MultinomialLogisticLossGrad {
  static constexpr std::string_view kName = "MultinomialLogisticLossGrad";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
};

// (p, label, h) -> (loss):  loss = -sum over classes j of h[label, j] log max(p[j], 1e-20) /
// divisor. h is classes x classes.
struct InfogainLoss {
  static constexpr std::string_view kName = "InfogainLoss";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
  static constexpr OperandSet kExactInputs = {1};
  LabelRule rule;
};

// (p, label, h, dloss) -> (dx):  x are the scores with softmax p;
// dx[j] = dloss (p[j] * sum of h[label, :] - h[label, j]) / divisor; 0 where ignored.
struct InfogainLossGrad {
  static constexpr std::string_view kName = "InfogainLossGrad";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
  LabelRule rule;
};

}  // namespace caffe::ops
