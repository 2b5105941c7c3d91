// What the compiler asks of a machine. No vendor header here: a device is a leaf folder
// that registers an implementation, and a missing device is a missing library.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "caffe/device/stream.hpp"
#include "caffe/export.hpp"

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
  // The same in every process that uses this device, and another for each device of a machine;
  // empty where several may use it as if it were theirs alone (the CPU).
  virtual std::string identity() const { return ""; }
  // Threads (CPU) or other parallelism that decides the order of reductions.
  virtual int num_threads() const = 0;

  // Zero-filled memory, aligned for the widest vector. Throws DeviceError when there is none.
  virtual std::shared_ptr<void> Allocate(size_t bytes) = 0;
  // Bytes that can still be allocated; nothing where that has no meaning.
  virtual std::optional<size_t> FreeBytes() { return std::nullopt; }
  // True when the host may dereference this device's pointers.
  virtual bool is_host_accessible() const = 0;
  // Ordered after everything launched on the compute stream so far.
  virtual void CopyToHost(void* host, const void* device, size_t bytes) = 0;
  virtual void CopyFromHost(void* device, const void* host, size_t bytes) = 0;
  // Waits until everything launched so far has finished.
  virtual void Synchronize() = 0;

  // What the calling thread launches from now on goes to this device.
  virtual void MakeCurrent() {}
  // The stream of kernels. Lives as long as the device.
  virtual Stream& compute_stream();
  virtual std::unique_ptr<Stream> MakeStream();
  virtual std::unique_ptr<Event> MakeEvent();

  // A described device stands for a chip that is not there: nets are planned for it, not run.
  virtual bool is_described() const { return false; }

  // Where code launches that names no stream. It is not in order with the compute stream, but for
  // events. Lives as long as the device.
  virtual Stream& default_stream() { return compute_stream(); }
};

struct DeviceFactory {
  // Throws DeviceError saying why there is none, or none with that number.
  std::shared_ptr<Device> (*make)(int id) = nullptr;
  // How many there are; throws DeviceError where they cannot be counted.
  int (*count)() = nullptr;
  // A described device; throws InvalidArgument naming the known ones. May be left out.
  std::shared_ptr<Device> (*describe)(std::string_view name) = nullptr;
};

struct DeviceRegistrar {
  DeviceRegistrar(DeviceKind kind, DeviceFactory factory);
};

// Throws Unsupported naming the kind when this build has no such device.
CAFFE_EXPORT std::shared_ptr<Device> MakeDevice(DeviceKind kind, int id = 0);
// A described device: "H200". Throws Unsupported when this build cannot plan for the kind.
std::shared_ptr<Device> DescribeDevice(DeviceKind kind, std::string_view name);
CAFFE_EXPORT int NumDevices(DeviceKind kind);
CAFFE_EXPORT bool IsDeviceBuilt(DeviceKind kind);

}  // namespace caffe
