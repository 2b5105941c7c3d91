// Times of a plan's steps: measured on this machine without running the net, or estimated for a
// chip that is not present.
//
//   const PlanTimes times = TimesOfPlan(net);
//   times.milliseconds();                          // of a forward and backward pass
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/net.hpp"

namespace caffe {

// Time per layer and direction in milliseconds.
struct LayerTime {
  std::string layer;
  double forward_ms = 0, backward_ms = 0;
};

struct PlanTimes {
  // In the order of PlanSteps(). Empty for a call of the host (a data layer, a layer in Python),
  // which cannot be measured without its data.
  std::vector<std::optional<double>> step_ms;
  std::vector<LayerTime> layers;
  double forward_ms = 0, backward_ms = 0;
  // Conversions of weights to other types and layouts, which training repeats in each iteration.
  double weight_copies_ms = 0;
  double update_ms = 0;  // of the solver
  int host_calls = 0;    // steps that were not timed
  int64_t batch = 0;     // batch size of the first data or input layer's first blob; 0: none
  int measured = 0;      // distinct steps that were run for this; the others were cached
  double milliseconds() const { return forward_ms + backward_ms + weight_copies_ms + update_ms; }
  // Empty without a batch size or a time.
  std::optional<double> ImagesPerSecond() const {
    if (batch == 0 || milliseconds() <= 0) return std::nullopt;
    return static_cast<double>(batch) / milliseconds() * 1e3;
  }
};

// Runs each kernel of the plan alone, on noise in operands of the plan's shapes, types and layouts,
// and takes the fastest run. Steps with the same kernel and operands are measured once. Times are
// cached per machine in $XDG_CACHE_HOME/cortado/step_times-<device> ($HOME/.cache if the variable
// is not set). A cache file that cannot be read or written causes a warning. Throws Unsupported for
// a net that is planned for a device that is not present.
CAFFE_EXPORT PlanTimes TimesOfPlan(const Net& net);

// Estimates the same with a roofline model for a net that is planned for a chip that is not
// present: a step takes its launch plus the longer of its memory and arithmetic times, at the
// shares of the peaks that kernels reach in practice. No kernel is measured, so expect errors of
// tens of percent. Throws Unsupported if the peaks of the device are not known.
CAFFE_EXPORT PlanTimes RooflineOfPlan(const Net& net);

}  // namespace caffe
