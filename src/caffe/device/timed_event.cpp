#include "caffe/device/timed_event.hpp"

#include <map>

namespace caffe {
namespace {

std::map<DeviceKind, TimedEventMaker>& TimedEventMakers() {
  static std::map<DeviceKind, TimedEventMaker> makers;
  return makers;
}

}  // namespace

TimedEventRegistrar::TimedEventRegistrar(DeviceKind kind, TimedEventMaker maker) {
  TimedEventMakers()[kind] = maker;
}

std::unique_ptr<Event> MakeTimedEvent(Device& device) {
  const auto found = TimedEventMakers().find(device.kind());
  return found != TimedEventMakers().end() ? found->second(device) : device.MakeEvent();
}

}  // namespace caffe
