// Estimates how much free device memory drivers and libraries will take while a net runs.
#pragma once

#include <cstddef>

#include "caffe/device/device.hpp"

namespace caffe {

// Estimated bytes if the net is one of `ranks` ranks; 0 if unknown.
size_t ReservedBytes(const Device& device, int ranks);

// Registers the estimate of a kind of device.
struct ReservedMemoryRegistrar {
  using Estimate = size_t (*)(int ranks);
  ReservedMemoryRegistrar(DeviceKind kind, Estimate estimate);
};

}  // namespace caffe
