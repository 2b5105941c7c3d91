// What the compiler asks of a machine. No vendor header here: a device is a leaf folder
// that registers an implementation, and a missing device is a missing library.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace caffe {

enum class DeviceKind { kCpu, kCuda };

// "cpu", "cuda".
std::string_view Name(DeviceKind kind);

// Where tensors live and steps run. Calls are made from one thread at a time.
class Device {
 public:
  virtual ~Device() = default;

  virtual DeviceKind kind() const = 0;
  // For the log: the chip, its threads and instruction set.
  virtual std::string description() const = 0;
  // Threads (CPU) or other parallelism that decides the order of reductions.
  virtual int num_threads() const = 0;

  // Zero-filled memory, aligned for the widest vector. Throws DeviceError when there is none.
  virtual std::shared_ptr<void> Allocate(size_t bytes) = 0;
  // True when the host may dereference this device's pointers.
  virtual bool is_host_accessible() const = 0;
  virtual void CopyToHost(void* host, const void* device, size_t bytes) = 0;
  virtual void CopyFromHost(void* device, const void* host, size_t bytes) = 0;
  // Waits until everything launched so far has finished.
  virtual void Synchronize() = 0;
};

using DeviceFactory = std::shared_ptr<Device> (*)(int id);

struct DeviceRegistrar {
  DeviceRegistrar(DeviceKind kind, DeviceFactory factory);
};

// Throws Unsupported naming the kind when this build has no such device.
std::shared_ptr<Device> MakeDevice(DeviceKind kind, int id = 0);

}  // namespace caffe
