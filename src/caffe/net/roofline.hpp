// What a plan's steps take on a chip of which only the peaks are known.
#pragma once

#include <optional>

#include "caffe/device/device_peaks.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/plan/step_timer.hpp"
#include "caffe/plan_times.hpp"

namespace caffe {

double RooflineMilliseconds(const Node& node, const DevicePeaks& peaks);
// `update`: the solver's, which only moves bytes.
PlanTimes RooflineOfPlan(const Net& net, const std::optional<TimedStep>& update,
                         const DevicePeaks& peaks);
// With the peaks of the net's device.
PlanTimes RooflineOfPlan(const Net& net, const std::optional<TimedStep>& update);

}  // namespace caffe
