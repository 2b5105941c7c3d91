#include "caffe/device/device.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>

#include "caffe/common.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

std::map<DeviceKind, DeviceFactory>& Factories() {
  static std::map<DeviceKind, DeviceFactory> factories;
  return factories;
}

const DeviceFactory& FactoryOf(DeviceKind kind) {
  const auto found = Factories().find(kind);
  if (found == Factories().end()) {
    throw Unsupported(
        StrCat("this build has no ", Name(kind),
               " device; run on the CPU (--set solver_mode=CPU and no --gpu, in Python "
               "caffe.set_mode_cpu())"));
  }
  return found->second;
}

class HostEvent final : public Event {
 public:
  void Synchronize() override {}
  bool IsReached() override { return true; }
  double SecondsSince(const Event& earlier) const override {
    return std::chrono::duration<double>(time - static_cast<const HostEvent&>(earlier).time)
        .count();
  }

  std::chrono::steady_clock::time_point time;
};

// Work runs in the caller's thread, so the stream has no state.
class HostStream final : public Stream {
 public:
  void* native() const override { return nullptr; }
  void Synchronize() override {}
  void Record(Event& event) override {
    static_cast<HostEvent&>(event).time = std::chrono::steady_clock::now();
  }
  void Wait(const Event&) override {}
  void CopyFromHost(void* device, const void* host, size_t bytes) override {
    std::copy_n(static_cast<const char*>(host), bytes, static_cast<char*>(device));
  }
  void CopyToHost(void* host, const void* device, size_t bytes) override {
    std::copy_n(static_cast<const char*>(device), bytes, static_cast<char*>(host));
  }
  void FillZero(void* device, size_t bytes) override { std::memset(device, 0, bytes); }
  void Copy(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
};

}  // namespace

std::string_view Name(DeviceKind kind) {
  return kind == DeviceKind::kCpu ? "cpu" : "cuda";
}

Stream& Device::compute_stream() {
  static HostStream stream;
  return stream;
}

std::unique_ptr<Stream> Device::MakeStream() {
  return std::make_unique<HostStream>();
}

std::unique_ptr<Event> Device::MakeEvent() {
  return std::make_unique<HostEvent>();
}

DeviceRegistrar::DeviceRegistrar(DeviceKind kind, DeviceFactory factory) {
  Factories()[kind] = factory;
}

std::shared_ptr<Device> MakeDevice(DeviceKind kind, int id) {
  return FactoryOf(kind).make(id);
}

std::shared_ptr<Device> DescribeDevice(DeviceKind kind, std::string_view name) {
  if (!Factories().contains(kind)) {
    throw Unsupported(StrCat("this build has no ", Name(kind), " device, so it cannot plan for '",
                             name,
                             "': planning needs no GPU, but a build with CUDA (preset "
                             "cuda-release); leave out --gpu to plan for the CPU"));
  }
  const DeviceFactory& factory = FactoryOf(kind);
  if (factory.describe == nullptr) {
    throw Unsupported(StrCat("a ", Name(kind), " device cannot be described; plan on a real one"));
  }
  return factory.describe(name);
}

int NumDevices(DeviceKind kind) {
  return FactoryOf(kind).count();
}

bool IsDeviceBuilt(DeviceKind kind) {
  return Factories().count(kind) > 0;
}

std::string DescribeCpu() {
  return MakeDevice(DeviceKind::kCpu)->description();
}

std::string DescribeGpu(int id) {
  return MakeDevice(DeviceKind::kCuda, id)->description();
}

int NumGpus() {
  return NumDevices(DeviceKind::kCuda);
}

}  // namespace caffe
