// Times of a net's plan, with a step that its solver adds.
#pragma once

#include <optional>

#include "caffe/plan/step_timer.hpp"
#include "caffe/plan_times.hpp"

namespace caffe {

PlanTimes TimesOfPlan(const Net& net, const std::optional<TimedStep>& update);

}  // namespace caffe
