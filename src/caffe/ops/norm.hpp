// Normalization: batch normalization and local response normalization.
#pragma once

#include <optional>
#include <string>

#include "caffe/ops/epilogue.hpp"
#include "caffe/ops/op.hpp"

namespace caffe::ops {

// (batch_mean, batch_variance) -> (mean, variance, factor), each updated in place. The batch
// variance is made unbiased with m / (m - 1), where m is `count` (unchanged if m is 1).
//   decaying sums (BVLC):   factor = f * factor + 1;  mean = f * mean + batch_mean; ...
//   moving average (NVCaffe): mean = f * mean + (1 - f) * batch_mean, a copy on the first pass
//   where `copies_first`; factor may be absent.
struct UpdateRunningStatistics {
  static constexpr std::string_view kName = "UpdateRunningStatistics";
  enum Input { kBatchMean, kBatchVariance };
  enum Output { kMean, kVariance, kFactor };
  static constexpr OperandSet kUpdates = {kMean, kVariance, kFactor};
  static constexpr NumericRule kNumericRule = NumericRule::kFloat;
  double fraction = 0.999;
  int64_t count = 1;
  bool decaying_sums = true;
  bool copies_first = true;
  std::string Attributes() const { return StrCat("fraction ", fraction); }
};

// (x) -> (mean, variance):  of each channel, over every axis but axis 1; the variance is the biased
// one.
struct ChannelStatistics {
  static constexpr std::string_view kName = "ChannelStatistics";
  enum Output { kMean, kVariance };
  LayoutRule layout_rule() const { return {.inputs = {0}}; }
  double Flops(std::span<const TensorDesc> inputs, std::span<const TensorDesc>) const {
    return 3.0 * static_cast<double>(inputs[0].count());
  }
};

// Batch normalization (Ioffe and Szegedy 2015) over every axis but axis 1; m elements per channel.
//
// (x[, gamma, beta]) -> (y, mean, variance[, running mean, running variance, running factor])
//   y = gamma * (x - mean) / sqrt(variance + eps) + beta, then the epilogue; variance is the biased
//   one (divided by m). The running statistics are updated as `running` says.
struct BatchNorm {
  static constexpr std::string_view kName = "BatchNorm";
  enum Input { kX, kGamma, kBeta };
  enum Output { kY, kMean, kVariance, kRunning };
  static constexpr OperandSet kUpdates = {kRunning, kRunning + 1, kRunning + 2};
  double eps = 1e-5;
  Epilogue epilogue = {};
  std::optional<UpdateRunningStatistics> running = std::nullopt;
  std::string Attributes() const {
    return StrCat("eps ", eps, running ? ", " + running->Attributes() : "", EpilogueText(epilogue));
  }
  LayoutRule layout_rule() const {
    return {
        .inputs = WithEpilogueData({kX}, epilogue), .outputs = {kY}, .prefers_channels_last = true};
  }
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc> outputs) const {
    return 6.0 * static_cast<double>(outputs[0].count());
  }
};

// (x, mean, variance, dy[, gamma[, y]]) -> (dx[, dgamma, dbeta[, dresidual]])
//   With y, the output of a ReLU that follows, dy is multiplied by 0 where y is not above 0, so
//   that NaN stays NaN; dresidual is the result.
struct BatchNormGrad {
  static constexpr std::string_view kName = "BatchNormGrad";
  static constexpr bool kInPlace = true;
  enum Input { kX, kMean, kVariance, kDy, kGamma, kY };
  enum Output { kDx, kDgamma, kDbeta, kDresidual };
  double eps = 1e-5;
  std::string Attributes() const { return StrCat("eps ", eps); }
  LayoutRule layout_rule() const {
    return {.inputs = {kX, kDy, kY}, .outputs = {kDx, kDresidual}, .prefers_channels_last = true};
  }
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc> outputs) const {
    return 10.0 * static_cast<double>(outputs[0].count());
  }
};

// (x, mean, variance[, factor, gamma, beta]) -> (y):  as BatchNorm, with given statistics. mean and
// variance are first divided by factor, or set to 0 if factor is 0.
struct BatchNormInference {
  static constexpr std::string_view kName = "BatchNormInference";
  static constexpr bool kInPlace = true;
  enum Input { kX, kMean, kVariance, kFactor, kGamma, kBeta };
  double eps = 1e-5;
  Epilogue epilogue = {};
  std::string Attributes() const { return StrCat("eps ", eps, EpilogueText(epilogue)); }
  LayoutRule layout_rule() const {
    return {
        .inputs = WithEpilogueData({kX}, epilogue), .outputs = {0}, .prefers_channels_last = true};
  }
  OperandSet item_inputs() const { return WithEpilogueData({kX}, epilogue); }
};

// (dy, variance[, factor, gamma]) -> (dx):  dx = gamma * dy / sqrt(variance / factor + eps).
struct BatchNormInferenceGrad {
  static constexpr std::string_view kName = "BatchNormInferenceGrad";
  enum Input { kDy, kVariance, kFactor, kGamma };
  static constexpr bool kInPlace = true;
  double eps = 1e-5;
  LayoutRule layout_rule() const {
    return {.inputs = {0}, .outputs = {0}, .prefers_channels_last = true};
  }
};

// Local response normalization across channels (Krizhevsky et al. 2012), `size` odd:
// (x) -> (y):  y = x * scale^-beta, scale = k + alpha / size * sum of squares over the window.
struct Lrn {
  static constexpr std::string_view kName = "Lrn";
  static constexpr OperandSet kItemInputs = {0};
  int64_t size = 5;
  double alpha = 1, beta = 0.75, k = 1;
  std::string Attributes() const {
    return StrCat("size ", size, ", alpha ", alpha, ", beta ", beta, ", k ", k);
  }
  LayoutRule layout_rule() const {
    return {.inputs = {0}, .outputs = {0}, .prefers_channels_last = true};
  }
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc> outputs) const {
    return (2.0 * static_cast<double>(size) + 10) * static_cast<double>(outputs[0].count());
  }
};

// (x, dy) -> (dx):  recomputes the scales, which is cheaper than storing them:
//   dx_i = scale_i^-beta dy_i - 2 alpha beta / size * x_i * sum_j dy_j x_j scale_j^(-beta - 1)
// then applies the epilogue, which reads x.
struct LrnGrad {
  static constexpr std::string_view kName = "LrnGrad";
  enum Input { kX, kDy };
  int64_t size = 5;
  double alpha = 1, beta = 0.75, k = 1;
  Epilogue epilogue = {};
  std::string Attributes() const {
    return epilogue.empty() ? "" : EpilogueText(epilogue).substr(2);
  }
  LayoutRule layout_rule() const {
    return {.inputs = {0, 1}, .outputs = {0}, .prefers_channels_last = true};
  }
};

// Local response normalization within a channel:
// (x) -> (y[, scale]):  scale = 1 + alpha * mean of squares over a size x size window (padding
// counts up to the far edge, as in AvePool); y = x * scale^-beta.
struct LrnWithin {
  static constexpr std::string_view kName = "LrnWithin";
  int64_t size = 5;
  double alpha = 1, beta = 0.75;
  std::string Attributes() const {
    return StrCat("size ", size, ", alpha ", alpha, ", beta ", beta);
  }
  LayoutRule layout_rule() const {
    return {.inputs = {0}, .outputs = {0, 1}, .prefers_channels_last = true};
  }
};

// (x, scale, dy) -> (dx)
struct LrnWithinGrad {
  static constexpr std::string_view kName = "LrnWithinGrad";
  enum Input { kX, kScale, kDy };
  int64_t size = 5;
  double alpha = 1, beta = 0.75;
  LayoutRule layout_rule() const {
    return {.inputs = {0, 1, 2}, .outputs = {0}, .prefers_channels_last = true};
  }
};

}  // namespace caffe::ops
