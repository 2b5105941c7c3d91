// LaunchTimer: how long a device takes for what is launched on it.
#pragma once

#include <functional>
#include <memory>

#include "caffe/device/device.hpp"

namespace caffe {

// On the device's compute stream, whose earlier work is not counted. Nor is the time that the host
// takes to launch: the device is kept busy meanwhile. Launching takes 5 to 50 us, more than many
// kernels.
class LaunchTimer {
 public:
  // For so long the device is kept busy before what is timed.
  static constexpr double kBusySeconds = 1e-4;

  explicit LaunchTimer(Device& device);

  // Seconds; returns when all of it is done. Throws what `launch` throws, and DeviceError for what
  // goes wrong on the device.
  double Time(const std::function<void()>& launch);

 private:
  Stream& stream_;
  const std::unique_ptr<Event> begin_, end_;
};

}  // namespace caffe
