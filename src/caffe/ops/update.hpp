// Ops around an optimizer step: norms of the parameters, decisions that depend on them, averages.
#pragma once

#include <string>
#include <vector>

#include "caffe/ops/op.hpp"
#include "caffe/ops/step_rules.hpp"

namespace caffe::ops {

// Columns of the result of MeasureParameters.
enum Measure {
  kWeightSquares,
  kGradientSquares,
  kHistorySquares,
  kGradientDotHistory,
  kLargestGradient,      // largest absolute value; NaN if any gradient is NaN
  kLargestHalfGradient,  // the same for parameters with 16-bit gradients, 0 for others
  kMeasures
};

// (g_0, w_0, h_0, g_1, w_1, h_1, ...) -> (measures):  (n + 1) x kMeasures in double, a row per
// parameter and a last row for all together. Sums over an absent w or h are 0.
struct MeasureParameters {
  static constexpr std::string_view kName = "MeasureParameters";
  static constexpr NumericRule kNumericRule = NumericRule::kFloat;
  std::vector<bool> is_half;  // one per parameter: its gradient was computed in 16 bits

  std::string Attributes() const { return StrCat(is_half.size(), " parameters"); }
};

// Scalars of an optimizer step from the host, for all parameters: a vector of kStepNumbers doubles.
enum StepNumber {
  kRate,
  kMomentum,
  kWeightDecay,
  kGradientFactor,  // factor of gradients, without un-scaling and clipping
  kCorrection,      // specific to the optimizer, as Adam's bias correction
  kAverageCount,    // for AverageAll: number of this update, from 1, plus all skipped updates
  kStepNumbers
};

// A decision: a vector of 2 + n doubles.
enum Decision {
  kTakesStep,    // 0: the step is skipped
  kTotalFactor,  // gradient factor, un-scaling and clipping together
  kFirstRate,    // rate of parameter i is at kFirstRate + i
};

// (step, measures) -> (decision, state):  decides the clip factor, the gradient scale, skipping,
// and per-parameter rates, which depend on norms. `state` is a StepState followed by LARC's
// cosines, one per parameter; updated in place.
struct DecideStep {
  static constexpr std::string_view kName = "DecideStep";
  static constexpr NumericRule kNumericRule = NumericRule::kFloat;
  static constexpr int kStateNumbers = sizeof(StepState) / sizeof(double);
  double clip_gradients = -1;  // largest L2 norm of all gradients together; negative: no limit
  GradientScaleRule scaling;
  LarcRule larc;

  // False if a step depends only on its schedule.
  bool decides() const { return clip_gradients >= 0 || scaling.is_on() || larc.is_on; }

  // Decides everything but the parameters' rates. `total` is the last row of the measures.
  CAFFE_HOST_DEVICE inline void DecideAll(const double* step, const double* total, double* decision,
                                          StepState* state) const {
    const double scale = state->scale;
    state->used_scale = scale;
    state->gradient_norm = 0;
    state->clip_factor = 1;
    decision[kTotalFactor] = step[kGradientFactor] / scale;
    const bool skips = scaling.is_on() && !std::isfinite(total[kLargestGradient]);
    state->is_skipped = skips ? 1 : 0;
    decision[kTakesStep] = skips ? 0 : 1;
    if (skips) return scaling.Skip(state);
    if (clip_gradients >= 0) {
      const double norm = std::sqrt(total[kGradientSquares]) / scale;
      state->gradient_norm = norm;
      if (norm > clip_gradients) state->clip_factor = clip_gradients / norm;
      decision[kTotalFactor] *= state->clip_factor;
    }
    scaling.Advance(total[kLargestHalfGradient] / scale, state);
  }

  // Rate of the parameter that has these measures and this cosine; call after DecideAll.
  CAFFE_HOST_DEVICE inline double RateOf(const double* step, const double* measures,
                                         const double* decision, double* cosine) const {
    if (!larc.is_on || decision[kTakesStep] == 0) return step[kRate];
    const double factor = decision[kTotalFactor];
    const LarcRule::Norms norms = {
        std::sqrt(measures[kWeightSquares]), std::sqrt(measures[kGradientSquares]) * factor,
        std::sqrt(measures[kHistorySquares]), measures[kGradientDotHistory] * factor};
    return larc.LocalRate(step[kRate], step[kMomentum], norms, cosine);
  }
};

// (x_0, ..., x_n-1, decision) -> (y_0, ..., y_n-1):  y = x, byte by byte. If a decision is given,
// copies only if the step is skipped.
struct CopyAll {
  static constexpr std::string_view kName = "CopyAll";
  static constexpr NumericRule kNumericRule = NumericRule::kFloat;
};

// (x_0, ..., x_n-1, step, state, decision) -> (a_0, ..., a_n-1):  a = d * a + (1 - d) * x in place,
// in double, with d = min(decay, (1 + u) / (10 + u)) in update u, counted from 1 without skipped
// ones. `step` and `state` as in DecideStep. If a decision is given, nothing changes when the step
// is skipped.
struct AverageAll {
  static constexpr std::string_view kName = "AverageAll";
  static constexpr NumericRule kNumericRule = NumericRule::kFloat;
  double decay = 0;

  // In short runs early values decay quickly; long runs average over 1 / (1 - decay) updates.
  CAFFE_HOST_DEVICE inline double DecayOf(const double* step, const StepState& state) const {
    const double update = step[kAverageCount] - state.skipped_steps;
    return std::min(decay, (1 + update) / (10 + update));
  }

  std::string Attributes() const { return StrCat("decay ", decay); }
};

}  // namespace caffe::ops
