// The net's fields of gradient scaling, and when it gives up.
#pragma once

#include "caffe/net.hpp"
#include "caffe/ops/step_rules.hpp"

namespace caffe {

// Throws InvalidArgument for a factor that is not positive and finite.
ops::GradientScaleRule MakeGradientScaleRule(const Net::GradientScaling& scaling);

// Throws Error after kMostSkippedSteps in a row: smaller scales do not help then.
inline constexpr int kMostSkippedSteps = 100;
void CheckSkippedSteps(const ops::StepState& state);

}  // namespace caffe
