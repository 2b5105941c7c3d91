// What precedes an update: the numbers that it depends on, and what follows from them.
#pragma once

#include <string>
#include <vector>

#include "caffe/ops/op.hpp"
#include "caffe/ops/step_rules.hpp"

namespace caffe::ops {

// Columns of what MeasureParameters finds.
enum Measure {
  kWeightSquares,
  kGradientSquares,
  kHistorySquares,
  kGradientDotHistory,
  kLargestGradient,      // largest absolute value, NaN when one is
  kLargestHalfGradient,  // the same for parameters with 16-bit gradients, 0 for others
  kMeasures
};

// (g_0, w_0, h_0, g_1, w_1, h_1, ...) -> (measures):  (n + 1) x kMeasures in double, a row per
// parameter and one of all together. Sums over a w or h that is left out are 0.
struct MeasureParameters {
  static constexpr std::string_view kName = "MeasureParameters";
  static constexpr NumericRule kNumericRule = NumericRule::kFloat;
  std::vector<bool> is_half;  // one per parameter: its gradient was made in 16 bits

  std::string Attributes() const { return StrCat(is_half.size(), " parameters"); }
};

// A step's numbers from the host, of all parameters: a vector of kStepNumbers doubles.
enum StepNumber {
  kRate,
  kMomentum,
  kWeightDecay,
  kGradientFactor,  // what gradients are multiplied by; un-scaling and clipping not included
  kCorrection,      // of the rule's own: Adam's bias correction
  kAverageCount,    // of AverageAll: this update's number, counted from 1, and all skipped steps
  kStepNumbers
};

// A decision: 2 + n doubles.
enum Decision {
  kTakesStep,    // 0: nothing is to change
  kTotalFactor,  // gradient factor, un-scaling and clipping together
  kFirstRate,    // parameter i's rate is at kFirstRate + i
};

// (step, measures) -> (decision, state):  the clip factor, the gradient scale, whether the step is
// skipped, and each parameter's rate, which depend on norms. `state` is a
// StepState followed by LARC's cosines, one per parameter; updated in place.
struct DecideStep {
  static constexpr std::string_view kName = "DecideStep";
  static constexpr NumericRule kNumericRule = NumericRule::kFloat;
  static constexpr int kStateNumbers = sizeof(StepState) / sizeof(double);
  double clip_gradients = -1;  // largest L2 norm of all gradients together; negative: any
  GradientScaleRule scaling;
  LarcRule larc;

  // False when a step depends on its schedule alone.
  bool decides() const { return clip_gradients >= 0 || scaling.is_on() || larc.is_on; }

  // All but the parameters' rates. `total` is the measures' last row.
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

  // The rate of a parameter, whose measures and cosine these are, after DecideAll.
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

// (x_0, ..., x_n-1, decision) -> (y_0, ..., y_n-1):  y = x, byte by byte. With a decision only when
// it is against the step.
struct CopyAll {
  static constexpr std::string_view kName = "CopyAll";
  static constexpr NumericRule kNumericRule = NumericRule::kFloat;
};

// (x_0, ..., x_n-1, step, state, decision) -> (a_0, ..., a_n-1):  a = d * a + (1 - d) * x in place,
// in double, with d = min(decay, (1 + u) / (10 + u)) in update u, counted from 1 without skipped
// steps. `step` and `state` are those of DecideStep. With a decision only where it takes the step.
struct AverageAll {
  static constexpr std::string_view kName = "AverageAll";
  static constexpr NumericRule kNumericRule = NumericRule::kFloat;
  double decay = 0;

  // Short runs forget where they began, long ones average over 1 / (1 - decay) updates.
  CAFFE_HOST_DEVICE inline double DecayOf(const double* step, const StepState& state) const {
    const double update = step[kAverageCount] - state.skipped_steps;
    return std::min(decay, (1 + update) / (10 + update));
  }

  std::string Attributes() const { return StrCat("decay ", decay); }
};

}  // namespace caffe::ops
