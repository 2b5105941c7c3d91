#include "caffe/device/device.hpp"

#include <map>

#include "caffe/common.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

std::map<DeviceKind, DeviceFactory>& Factories() {
  static std::map<DeviceKind, DeviceFactory> factories;
  return factories;
}

}  // namespace

std::string_view Name(DeviceKind kind) {
  return kind == DeviceKind::kCpu ? "cpu" : "cuda";
}

DeviceRegistrar::DeviceRegistrar(DeviceKind kind, DeviceFactory factory) {
  Factories()[kind] = factory;
}

std::shared_ptr<Device> MakeDevice(DeviceKind kind, int id) {
  const auto found = Factories().find(kind);
  if (found == Factories().end()) {
    throw Unsupported(StrCat("this build has no ", Name(kind),
                             " device; set solver_mode: CPU or leave out -gpu"));
  }
  return found->second(id);
}

std::string DescribeCpu() {
  return MakeDevice(DeviceKind::kCpu)->description();
}

}  // namespace caffe
