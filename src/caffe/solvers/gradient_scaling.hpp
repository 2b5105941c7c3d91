// The net's fields of gradient scaling, and when it gives up.
#pragma once

#include <functional>
#include <string>

#include "caffe/ops/step_rules.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// By the net's global_grad_scale fields. A net that sets none of them has an adaptive scale where
// `adaptive_by_default`. Throws InvalidArgument for a factor that is not positive and finite.
ops::GradientScaleRule MakeGradientScaleRule(const NetParameter& net, bool adaptive_by_default);

// Throws Error after kMostSkippedSteps in a row: smaller scales do not help then. Its text ends
// with what `cause` finds, where it finds something (Net::DescribeFirstNonFinite).
inline constexpr int kMostSkippedSteps = 100;
void CheckSkippedSteps(const ops::StepState& state, const std::function<std::string()>& cause);

}  // namespace caffe
