// The net's fields of gradient scaling, and when it gives up.
#pragma once

#include "caffe/ops/step_rules.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// By the net's global_grad_scale fields. A net that sets none of them has an adaptive scale where
// `adaptive_by_default`. Throws InvalidArgument for a factor that is not positive and finite.
ops::GradientScaleRule MakeGradientScaleRule(const NetParameter& net, bool adaptive_by_default);

// Throws Error after kMostSkippedSteps in a row: smaller scales do not help then.
inline constexpr int kMostSkippedSteps = 100;
void CheckSkippedSteps(const ops::StepState& state);

}  // namespace caffe
