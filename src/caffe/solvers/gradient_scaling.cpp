#include "caffe/solvers/gradient_scaling.hpp"

#include <cmath>

#include "caffe/error.hpp"

namespace caffe {

ops::GradientScaleRule MakeGradientScaleRule(const Net::GradientScaling& scaling) {
  Require(std::isfinite(scaling.factor) && scaling.factor > 0, "net: global_grad_scale is ",
          scaling.factor, "; it must be positive");
  return {.factor = scaling.factor, .adaptive = scaling.adaptive};
}

void CheckSkippedSteps(const ops::StepState& state) {
  if (state.skipped_in_a_row < kMostSkippedSteps) return;
  throw Error(StrCat("solver: gradients have not been finite in ", state.skipped_in_a_row,
                     " iterations in a row, at last with the gradient scale ", state.scale,
                     "; the net diverges: lower base_lr, or look for infinities in the data"));
}

}  // namespace caffe
