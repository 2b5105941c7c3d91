// Folding: parameters of what follows a product become part of the product's own.
#pragma once

#include "caffe/ops/op.hpp"

namespace caffe::ops {

// (w[, bias][, mean, variance, factor][, gamma][, beta]) -> (folded w, folded bias)
//   The weights, a row for each channel c, and the bias with which a product gives what
//   BatchNormInference or ScaleShift makes of its result:
//     s_c = gamma_c / sqrt(variance_c / factor + eps);  w_c * s_c;  (bias_c - mean_c / factor) *
//     s_c + beta_c
//   (statistics count as 0 where factor is 0). Without statistics s = gamma.
struct FoldChannels {
  static constexpr std::string_view kName = "FoldChannels";
  static constexpr NumericRule kNumericRule = NumericRule::kFloat;
  enum Input { kW, kBias, kMean, kVariance, kFactor, kGamma, kBeta, kNumInputs };
  enum Output { kFoldedW, kFoldedBias };
  double eps = 1e-5;
  std::string Attributes() const { return StrCat("eps ", eps); }
};

}  // namespace caffe::ops
