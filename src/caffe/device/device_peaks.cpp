#include "caffe/device/device_peaks.hpp"

#include <map>

namespace caffe {
namespace {

std::map<DeviceKind, DevicePeaksRegistrar::Find>& Finders() {
  static std::map<DeviceKind, DevicePeaksRegistrar::Find> finders;
  return finders;
}

}  // namespace

DevicePeaksRegistrar::DevicePeaksRegistrar(DeviceKind kind, Find find) {
  Finders()[kind] = find;
}

std::optional<DevicePeaks> PeaksOf(const Device& device) {
  const auto found = Finders().find(device.kind());
  if (found == Finders().end() || !device.is_described()) return std::nullopt;
  return found->second(device);
}

}  // namespace caffe
