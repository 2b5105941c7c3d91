// Host memory that a device copies to and from by itself.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "caffe/device/device.hpp"
#include "caffe/export.hpp"

namespace caffe {

// Makes such memory; callable in any thread.
using HostMemory = std::function<std::shared_ptr<void>(size_t bytes)>;

// Pinned for a GPU, so that copies run while the host goes on; ordinary memory otherwise. Not
// zeroed. Throws DeviceError when there is none.
CAFFE_EXPORT std::shared_ptr<void> AllocateHostMemory(Device& device, size_t bytes);

// What a kind of device registers that pins memory for the current device.
using HostAllocator = std::shared_ptr<void> (*)(size_t bytes);
struct HostMemoryRegistrar {
  HostMemoryRegistrar(DeviceKind kind, HostAllocator allocator);
};

}  // namespace caffe
