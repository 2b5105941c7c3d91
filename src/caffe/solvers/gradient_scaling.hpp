// Reads the net's gradient scaling fields, and stops training after too many skipped updates.
#pragma once

#include <functional>
#include <string>

#include "caffe/ops/step_rules.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Reads the net's global_grad_scale fields. If none is set, the scale is adaptive if
// `adaptive_by_default`. Throws InvalidArgument for a factor that is not positive and finite.
ops::GradientScaleRule MakeGradientScaleRule(const NetParameter& net, bool adaptive_by_default);

// Throws Error after kMostSkippedSteps skipped updates in a row, because smaller scales do not help
// then. Its text ends with the result of `cause`, unless empty (Net::DescribeFirstNonFinite).
inline constexpr int kMostSkippedSteps = 100;
void CheckSkippedSteps(const ops::StepState& state, const std::function<std::string()>& cause);

}  // namespace caffe
