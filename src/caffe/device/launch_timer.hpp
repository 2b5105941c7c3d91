// LaunchTimer: measures the device time of launched work.
#pragma once

#include <functional>
#include <memory>

#include "caffe/device/device.hpp"

namespace caffe {

// Measures work on the device's compute stream. Excludes earlier work of the stream and the host's
// launch time, because the device is kept busy meanwhile: launching takes 5 to 50 us, more than
// many kernels.
class LaunchTimer {
 public:
  // The device is kept busy for this long before the timed work.
  static constexpr double kBusySeconds = 1e-4;

  explicit LaunchTimer(Device& device);

  // Returns seconds, when all of the work is done. Throws what `launch` throws, and DeviceError for
  // errors on the device.
  double Time(const std::function<void()>& launch);

 private:
  Stream& stream_;
  const std::unique_ptr<Event> begin_, end_;
};

}  // namespace caffe
