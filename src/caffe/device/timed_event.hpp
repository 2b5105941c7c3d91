// Events that are timed. Those of Device::MakeEvent() are for order and for waiting: on a GPU they
// are cheaper, and who waits for them leaves the processor to others.
#pragma once

#include <memory>

#include "caffe/device/device.hpp"

namespace caffe {

// For Event::SecondsSince().
CAFFE_EXPORT std::unique_ptr<Event> MakeTimedEvent(Device& device);

// What a kind of device registers whose ordinary events are not timed.
using TimedEventMaker = std::unique_ptr<Event> (*)(Device& device);
struct TimedEventRegistrar {
  TimedEventRegistrar(DeviceKind kind, TimedEventMaker maker);
};

}  // namespace caffe
