// GradientScaler: the factor that keeps small 16-bit gradients from vanishing, and what happens
// when it was too large (Micikevicius et al. 2018, arXiv 1710.03740, section 3.2).
#pragma once

#include <cstdint>
#include <limits>

#include "caffe/net.hpp"

namespace caffe {

class GradientScaler {
 public:
  // What a snapshot keeps.
  struct State {
    double scale = 1;  // of the next backward pass
    double limit = std::numeric_limits<double>::max();
    int good_steps = 0;         // since the last skipped one
    int64_t skipped_steps = 0;  // so far
  };

  GradientScaler() = default;
  // Throws InvalidArgument for a factor that is not positive and finite.
  explicit GradientScaler(const Net::GradientScaling& scaling);

  bool is_on() const { return scaling_.adaptive || scaling_.factor != 1; }
  double scale() const { return state_.scale; }
  const State& state() const { return state_; }
  void set_state(const State& state) { state_ = state; }

  // After a step: the scale of the next is K * 4 / `largest`, the largest un-scaled 16-bit gradient
  // (K where that is 0), or K when it does not adapt. At most the limit, which rises again after
  // kStepsToRaise steps.
  void Advance(double largest);
  // After a step whose gradients were not finite, and which was therefore skipped. Halves the
  // scale. Throws Error after kMostSkipped of them in a row: smaller scales do not help then.
  void Skip();

  static constexpr int kStepsToRaise = 200, kMostSkipped = 100;

 private:
  Net::GradientScaling scaling_;
  State state_;
  int skipped_in_a_row_ = 0;
};

}  // namespace caffe
