// Estimates step times of a plan on a chip from its peak performance.
#pragma once

#include <optional>

#include "caffe/device/device_peaks.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/plan/step_timer.hpp"
#include "caffe/plan_times.hpp"

namespace caffe {

double RooflineMilliseconds(const Node& node, const DevicePeaks& peaks);
// `update`: the solver's update, which is limited by memory bandwidth.
PlanTimes RooflineOfPlan(const Net& net, const std::optional<TimedStep>& update,
                         const DevicePeaks& peaks);
// The same with the peaks of the net's device.
PlanTimes RooflineOfPlan(const Net& net, const std::optional<TimedStep>& update);

}  // namespace caffe
