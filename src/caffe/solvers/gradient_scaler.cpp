#include "caffe/solvers/gradient_scaler.hpp"

#include <algorithm>
#include <cmath>

#include "caffe/error.hpp"

namespace caffe {

GradientScaler::GradientScaler(const Net::GradientScaling& scaling) : scaling_(scaling) {
  Require(std::isfinite(scaling.factor) && scaling.factor > 0, "net: global_grad_scale is ",
          scaling.factor, "; it must be positive");
}

void GradientScaler::Advance(double largest) {
  skipped_in_a_row_ = 0;
  if (state_.limit < std::numeric_limits<double>::max() && ++state_.good_steps == kStepsToRaise) {
    state_.good_steps = 0;
    state_.limit *= 2;
  }
  const bool has_measure = scaling_.adaptive && largest > 0;
  const double wanted = has_measure ? scaling_.factor * 4 / largest : scaling_.factor;
  state_.scale = std::min(wanted, state_.limit);
}

void GradientScaler::Skip() {
  ++state_.skipped_steps;
  state_.good_steps = 0;
  // No 16-bit gradient survives a scale above the largest half, so it need not be tried.
  constexpr double kLargestHalf = 65504;
  state_.limit = state_.scale = std::min(state_.scale, kLargestHalf) / 2;
  if (++skipped_in_a_row_ < kMostSkipped) return;
  throw Error(StrCat("solver: gradients have not been finite in ", skipped_in_a_row_,
                     " iterations in a row, at last with the gradient scale ", state_.scale,
                     "; the net diverges: lower base_lr, or look for infinities in the data"));
}

}  // namespace caffe
