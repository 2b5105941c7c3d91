#include "caffe/solvers/gradient_scaling.hpp"

#include <cmath>

#include "caffe/error.hpp"

namespace caffe {

ops::GradientScaleRule MakeGradientScaleRule(const NetParameter& net, bool adaptive_by_default) {
  const double factor = net.global_grad_scale();
  Require(std::isfinite(factor) && factor > 0, "net: global_grad_scale is ", factor,
          "; it must be positive");
  const bool is_given = net.has_global_grad_scale() || net.has_global_grad_scale_adaptive();
  return {.factor = factor,
          .adaptive = is_given ? net.global_grad_scale_adaptive() : adaptive_by_default,
          .is_power_of_two = net.global_grad_scale_power_of_two()};
}

void CheckSkippedSteps(const ops::StepState& state, const std::function<std::string()>& cause) {
  if (state.skipped_in_a_row < kMostSkippedSteps) return;
  const std::string found = cause();
  throw Error(StrCat("solver: gradients have not been finite in ", state.skipped_in_a_row,
                     " iterations in a row, at last with the gradient scale ", state.scale, ": ",
                     found.empty() ? "lower base_lr, or look for infinities in the data" : found));
}

}  // namespace caffe
