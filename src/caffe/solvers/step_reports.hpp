// StepReports: transfers a device's decisions about its last updates to the host.
#pragma once

#include <deque>
#include <memory>

#include "caffe/device/device.hpp"
#include "caffe/ops/step_rules.hpp"

namespace caffe {

// Does not wait until a report is taken.
class StepReports {
 public:
  struct Report {
    int iteration = 0;
    ops::StepState state;
  };

  explicit StepReports(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  // Copies the state in device memory as it is after all work launched so far.
  void Send(int iteration, const ops::StepState* on_device);
  bool is_empty() const { return under_way_.empty(); }
  // Waits for the oldest report.
  Report Take();

 private:
  struct UnderWay {
    int iteration = 0;
    std::shared_ptr<void> memory;
    std::unique_ptr<Event> arrived;
  };
  std::shared_ptr<Device> device_;
  std::deque<UnderWay> under_way_, idle_;
};

}  // namespace caffe
