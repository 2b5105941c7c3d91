#include "caffe/device/launch_timer.hpp"

#include "caffe/device/timed_event.hpp"

namespace caffe {

LaunchTimer::LaunchTimer(Device& device)
    : stream_(device.compute_stream()),
      begin_(MakeTimedEvent(device)),
      end_(MakeTimedEvent(device)) {}

double LaunchTimer::Time(const std::function<void()>& launch) {
  stream_.KeepBusy(kBusySeconds);
  stream_.Record(*begin_);
  launch();
  stream_.Record(*end_);
  end_->Synchronize();
  return end_->SecondsSince(*begin_);
}

}  // namespace caffe
