#include "caffe/device/host_memory.hpp"

#include <map>
#include <new>

namespace caffe {
namespace {

std::map<DeviceKind, HostAllocator>& Allocators() {
  static std::map<DeviceKind, HostAllocator> allocators;
  return allocators;
}

}  // namespace

HostMemoryRegistrar::HostMemoryRegistrar(DeviceKind kind, HostAllocator allocator) {
  Allocators()[kind] = allocator;
}

std::shared_ptr<void> AllocateHostMemory(Device& device, size_t bytes) {
  const auto found = Allocators().find(device.kind());
  if (found != Allocators().end()) {
    device.MakeCurrent();
    return found->second(bytes);
  }
  return {::operator new (bytes, std::align_val_t{64}),
          [](void* memory) { ::operator delete (memory, std::align_val_t{64}); }};
}

}  // namespace caffe
