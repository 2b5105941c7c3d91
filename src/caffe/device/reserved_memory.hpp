// What drivers and libraries will take of a device's free memory while a net runs.
#pragma once

#include <cstddef>

#include "caffe/device/device.hpp"

namespace caffe {

// Bytes, where the net is one of so many ranks: an estimate, 0 where nothing is known.
size_t ReservedBytes(const Device& device, int ranks);

// What a kind of device registers that knows.
struct ReservedMemoryRegistrar {
  using Estimate = size_t (*)(int ranks);
  ReservedMemoryRegistrar(DeviceKind kind, Estimate estimate);
};

}  // namespace caffe
