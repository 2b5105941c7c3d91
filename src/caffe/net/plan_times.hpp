// Times of a net's plan, including its solver's update.
#pragma once

#include <functional>
#include <optional>

#include "caffe/plan/step_timer.hpp"
#include "caffe/plan_times.hpp"

namespace caffe {

PlanTimes TimesOfPlan(const Net& net, const std::optional<TimedStep>& update);

// Adds up `milliseconds` of each node that runs a kernel.
PlanTimes AddUpTimes(const Net& net, const std::function<double(const Node&)>& milliseconds);

}  // namespace caffe
