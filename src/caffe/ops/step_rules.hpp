// Gradient scaling and LARC: what a solver's updates depend on besides its schedule. Every device
// shares these formulas.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "caffe/host_device.hpp"

namespace caffe::ops {

// State that is carried from update to update and reported to the host. In device memory, as
// doubles, followed by LARC's running cosines, one per parameter.
struct StepState {
  // State of gradient scaling.
  double scale = 1;  // for the next backward pass
  double limit = std::numeric_limits<double>::max();
  double good_steps = 0;     // since the last skipped update
  double skipped_steps = 0;  // in total
  double skipped_in_a_row = 0;
  // Results of the last update.
  double is_skipped = 0;
  double used_scale = 1;
  double gradient_norm = 0;  // L2 norm of all gradients together, un-scaled; 0 if nothing clips
  double clip_factor = 1;
};

// The factor that keeps small 16-bit gradients from underflowing, and its reduction after an
// overflow (Micikevicius et al. 2018, arXiv 1710.03740, section 3.2).
struct GradientScaleRule {
  static constexpr int kStepsToRaise = 200;
  double factor = 1;
  bool adaptive = false;
  // Rounds scales down to powers of two, so that scaling changes only exponents. NVCaffe does not.
  bool is_power_of_two = true;

  CAFFE_HOST_DEVICE inline bool is_on() const { return adaptive || factor != 1; }

  // After an update: the next scale is factor * 4 / `largest`, where `largest` is the largest
  // un-scaled 16-bit gradient (factor itself if that is 0), or `factor` if not adaptive; rounded.
  // The scale never exceeds the limit, which is doubled after kStepsToRaise updates.
  CAFFE_HOST_DEVICE inline void Advance(double largest, StepState* state) const {
    state->skipped_in_a_row = 0;
    if (state->limit < std::numeric_limits<double>::max() && ++state->good_steps == kStepsToRaise) {
      state->good_steps = 0;
      state->limit *= 2;
    }
    const double wanted = adaptive && largest > 0 ? factor * 4 / largest : factor;
    state->scale = Rounded(std::min(wanted, state->limit));
  }

  // After an update that was skipped because its gradients were not finite.
  CAFFE_HOST_DEVICE inline void Skip(StepState* state) const {
    // A 16-bit gradient overflows at any scale above the largest half, so such scales are not
    // tried: with powers of two the next scale is at most 32768.
    const double above_half = is_power_of_two ? 65536 : 65504;
    ++state->skipped_steps;
    ++state->skipped_in_a_row;
    state->good_steps = 0;
    state->limit = state->scale = Rounded(std::min(state->scale, above_half) / 2);
  }

  // Accepts the scales of a snapshot that may have been written with other settings.
  inline void Adopt(StepState* state) const {
    state->scale = Rounded(state->scale);
    if (state->limit < std::numeric_limits<double>::max()) state->limit = Rounded(state->limit);
  }

  // Rounds a positive scale down to one that this rule allows.
  CAFFE_HOST_DEVICE inline double Rounded(double scale) const {
    if (!is_power_of_two || !(scale > 0) || !std::isfinite(scale)) return scale;
    int exponent = 0;
    std::frexp(scale, &exponent);  // scale = f * 2^exponent with 0.5 <= f < 1
    return std::ldexp(1.0, exponent - 1);
  }
};

// LARC: layer-wise adaptive rate control (You, Gitman, Ginsburg 2017, arXiv 1708.03888), with
// NVCaffe's additions.
struct LarcRule {
  bool is_on = false, is_turbo = false, clips = false, is_sag = false;
  double eta = 0;

  bool reads_history() const { return is_on && (is_turbo || is_sag); }

  // L2 norms of one parameter, its gradient (un-scaled, before weight decay) and its history.
  struct Norms {
    double weights = 0, gradient = 0, history = 0;
    double gradient_dot_history = 0;
  };

  // The rate that replaces rate * lr_mult:
  //   trust = (1 - momentum) * eta * |w| / |g|     (SAG: eta * |w| / |h|), 1 if a norm is 0
  //   turbo: c = 0.95 c + 0.05 cos(g, h);  trust = trust - 0.9 c     (SAG: trust * (1 - 0.9 c))
  //   scale: rate * trust;  clip: min(rate, trust)
  // `cosine` is c of this parameter, initially 0, rounded to float precision as in snapshots.
  CAFFE_HOST_DEVICE inline double LocalRate(double rate, double momentum, const Norms& norms,
                                            double* cosine) const {
    const double numerator = is_sag ? norms.weights : (1 - momentum) * norms.weights;
    const double denominator = is_sag ? norms.history : norms.gradient;
    double trust = numerator > 0 && denominator > 0 ? eta * numerator / denominator : 1;
    if (is_turbo) {
      const double norm = norms.gradient * norms.history;
      const double now = norm > 0 ? norms.gradient_dot_history / norm : 0;
      const double c = static_cast<float>(0.95 * *cosine + 0.05 * now);
      *cosine = c;
      trust = is_sag ? trust * (1 - 0.9 * c) : trust - 0.9 * c;
    }
    return clips ? std::min(rate, trust) : rate * trust;
  }
};

}  // namespace caffe::ops
