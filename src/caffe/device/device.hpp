// Device: what the compiler needs to know of a machine. No vendor header here: a device is a leaf
// folder that registers an implementation, and a missing device is a missing library.
#pragma once

#include <atomic>
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

// Tensors are stored and steps run on a device. Only one thread at a time may call it.
class Device {
 public:
  virtual ~Device() = default;

  virtual DeviceKind kind() const = 0;
  // For the log: the chip, its threads and instruction set.
  virtual std::string description() const = 0;
  // Equal in every process that uses this device, and different for each device of a machine; empty
  // if several processes may each use all of it (the CPU).
  virtual std::string identity() const { return ""; }
  // Number of threads (CPU) or other parallelism that determines the order of reductions.
  virtual int num_threads() const = 0;

  // Returns zero-filled memory, aligned for the widest vector. Throws DeviceError if out of memory.
  virtual std::shared_ptr<void> Allocate(size_t bytes) = 0;
  // Bytes that can still be allocated; nothing if that has no meaning for the device.
  virtual std::optional<size_t> FreeBytes() { return std::nullopt; }
  // True when the host may dereference this device's pointers.
  virtual bool is_host_accessible() const = 0;
  // These copies run after everything launched on the compute stream so far.
  virtual void CopyToHost(void* host, const void* device, size_t bytes) = 0;
  virtual void CopyFromHost(void* device, const void* host, size_t bytes) = 0;
  // Waits until everything launched so far has finished.
  virtual void Synchronize() = 0;

  // The calling thread's later launches go to this device.
  virtual void MakeCurrent() {}
  // The stream that kernels are launched on. Lives as long as the device.
  virtual Stream& compute_stream();
  virtual std::unique_ptr<Stream> MakeStream();
  // One whose work goes before that of other streams, where the device can do that.
  virtual std::unique_ptr<Stream> MakeUrgentStream() { return MakeStream(); }
  virtual std::unique_ptr<Event> MakeEvent();

  // A described device stands for a chip that is not present: nets can be planned for it, not run.
  virtual bool is_described() const { return false; }

  // True while the process trains on several devices that reduce together. Releasing memory of one
  // may then wait for the others, and they for this one, so that nothing but the training itself
  // may allocate and release.
  bool reduces_with_others() const { return reduces_with_others_; }
  void set_reduces_with_others(bool does) { reduces_with_others_ = does; }

  // The stream of launches that name no stream. Not ordered with the compute stream, except by
  // events. Lives as long as the device.
  virtual Stream& default_stream() { return compute_stream(); }

 private:
  std::atomic<bool> reduces_with_others_ = false;
};

struct DeviceFactory {
  // Throws DeviceError if there is no device, or none with that number; the message says why.
  std::shared_ptr<Device> (*make)(int id) = nullptr;
  // Number of devices; throws DeviceError if they cannot be counted.
  int (*count)() = nullptr;
  // Makes a described device; throws InvalidArgument naming the known ones. May be null.
  std::shared_ptr<Device> (*describe)(std::string_view name) = nullptr;
};

struct DeviceRegistrar {
  DeviceRegistrar(DeviceKind kind, DeviceFactory factory);
};

// Throws Unsupported naming the kind if this build has no such device.
CAFFE_EXPORT std::shared_ptr<Device> MakeDevice(DeviceKind kind, int id = 0);
// Makes a described device, as "H200". Throws Unsupported if this build cannot plan for the kind.
std::shared_ptr<Device> DescribeDevice(DeviceKind kind, std::string_view name);
CAFFE_EXPORT int NumDevices(DeviceKind kind);
CAFFE_EXPORT bool IsDeviceBuilt(DeviceKind kind);

}  // namespace caffe
