#include "caffe/device/reserved_memory.hpp"

#include <map>

namespace caffe {
namespace {

std::map<DeviceKind, ReservedMemoryRegistrar::Estimate>& Estimates() {
  static std::map<DeviceKind, ReservedMemoryRegistrar::Estimate> estimates;
  return estimates;
}

}  // namespace

ReservedMemoryRegistrar::ReservedMemoryRegistrar(DeviceKind kind, Estimate estimate) {
  Estimates()[kind] = estimate;
}

size_t ReservedBytes(const Device& device, int ranks) {
  const auto found = Estimates().find(device.kind());
  return found == Estimates().end() ? 0 : found->second(ranks);
}

}  // namespace caffe
