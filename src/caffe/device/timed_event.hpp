// Events that measure time. Those of Device::MakeEvent() only order work and wait: on a GPU they
// are cheaper, and a thread that waits for them leaves the processor to others.
#pragma once

#include <memory>

#include "caffe/device/device.hpp"

namespace caffe {

// Makes an event for Event::SecondsSince().
CAFFE_EXPORT std::unique_ptr<Event> MakeTimedEvent(Device& device);

// Registers timed events for a kind of device that does not time ordinary events.
using TimedEventMaker = std::unique_ptr<Event> (*)(Device& device);
struct TimedEventRegistrar {
  TimedEventRegistrar(DeviceKind kind, TimedEventMaker maker);
};

}  // namespace caffe
