// Folding: merges parameters of an op that follows a product into the product's own parameters.
#pragma once

#include "caffe/ops/op.hpp"

namespace caffe::ops {

// (w[, bias][, mean, variance, factor][, gamma][, beta]) -> (folded w, folded bias)
//   Weights, with a row for each channel c, and bias with which a product alone computes what it
//   computes with a BatchNormInference or ScaleShift after it:
//     s_c = gamma_c / sqrt(variance_c / factor + eps);  w_c * s_c;  (bias_c - mean_c / factor) *
//     s_c + beta_c
//   (statistics count as 0 if factor is 0). Without statistics s = gamma.
struct FoldChannels {
  static constexpr std::string_view kName = "FoldChannels";
  static constexpr NumericRule kNumericRule = NumericRule::kFloat;
  enum Input { kW, kBias, kMean, kVariance, kFactor, kGamma, kBeta, kNumInputs };
  enum Output { kFoldedW, kFoldedBias };
  double eps = 1e-5;
  std::string Attributes() const { return StrCat("eps ", eps); }
};

}  // namespace caffe::ops
