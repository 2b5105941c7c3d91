// What a plan's steps take: measured on this machine without running the net, or estimated for a
// chip that is not there.
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
  // In the order of PlanSteps(). Empty: a call of the host (a data layer, a layer in Python), which
  // cannot be measured without its data.
  std::vector<std::optional<double>> step_ms;
  std::vector<LayerTime> layers;
  double forward_ms = 0, backward_ms = 0;
  // Copies of weights in other types and layouts, which training makes anew in each iteration.
  double weight_copies_ms = 0;
  double update_ms = 0;  // of the solver
  int host_calls = 0;    // steps without a time
  int64_t batch = 0;     // items of the first blob that a data or input layer makes; 0: none
  int measured = 0;      // different steps that were run for this; others were known
  double milliseconds() const { return forward_ms + backward_ms + weight_copies_ms + update_ms; }
  // Empty without a batch or a time.
  std::optional<double> ImagesPerSecond() const {
    if (batch == 0 || milliseconds() <= 0) return std::nullopt;
    return static_cast<double>(batch) / milliseconds() * 1e3;
  }
};

// Runs each kernel of the plan by itself, on operands of its shapes, types and layouts that hold
// noise, and takes the fastest run. Steps with the same kernel and operands are measured once, and
// kept in a file of this machine, $XDG_CACHE_HOME/cortado/step_times-<device> ($HOME/.cache where
// the variable is not set), so that the next plan finds them there. A file that cannot be read or
// written is a warning. Throws Unsupported for a net that is planned for a device that is not
// there.
CAFFE_EXPORT PlanTimes TimesOfPlan(const Net& net);

// The same for a net that is planned for a chip that is not there, by a roofline: each step takes
// the longer one of moving its bytes and of its arithmetic, at shares of the peaks that kernels
// reach in practice, and the launch of a kernel. No kernel is measured, so expect errors of tens of
// percent. Throws Unsupported where the peaks of the device are not known.
CAFFE_EXPORT PlanTimes RooflineOfPlan(const Net& net);

}  // namespace caffe
