// Measures the steps of a program while it runs.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "caffe/device/device.hpp"
#include "caffe/device/stream.hpp"

namespace caffe {

// Accumulated times of a step.
struct StepTime {
  double seconds = 0;
  int64_t runs = 0;
};

// On a GPU these are device times.
class StepProfiler {
 public:
  StepProfiler(Device& device, size_t steps) : device_(device), times_(steps) {}

  bool is_on() const { return is_on_; }
  void set_on(bool on) { is_on_ = on; }

  // Called before and after a step is launched on the compute stream.
  void Begin(size_t step);
  void End(size_t step);
  // Waits for the steps since the last call, and adds up their times.
  void AddUp();

  const std::vector<StepTime>& times() const { return times_; }  // by step

 private:
  Device& device_;
  bool is_on_ = false;
  std::vector<StepTime> times_;
  std::vector<std::pair<std::unique_ptr<Event>, std::unique_ptr<Event>>> events_;  // by step
  std::vector<size_t> timed_;  // steps since the last AddUp()
};

}  // namespace caffe
