// Host memory that a device can copy to and from by itself.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "caffe/device/device.hpp"
#include "caffe/export.hpp"

namespace caffe {

// Allocates such memory; callable in any thread.
using HostMemory = std::function<std::shared_ptr<void>(size_t bytes)>;

// Pinned for a GPU, so that copies are asynchronous; ordinary memory otherwise. Not zeroed. Throws
// DeviceError if out of memory.
CAFFE_EXPORT std::shared_ptr<void> AllocateHostMemory(Device& device, size_t bytes);

// Registers how a kind of device pins memory for the current device.
using HostAllocator = std::shared_ptr<void> (*)(size_t bytes);
struct HostMemoryRegistrar {
  HostMemoryRegistrar(DeviceKind kind, HostAllocator allocator);
};

}  // namespace caffe
