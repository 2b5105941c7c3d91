// Peak performance of a chip from its data sheet, for estimates when the chip is not present.
#pragma once

#include <optional>

#include "caffe/device/device.hpp"

namespace caffe {

// All per second. Products are those of dense matrices and convolutions, on tensor cores if the
// chip has them.
struct DevicePeaks {
  double memory_bytes = 0;     // reads and writes together
  double float_flops = 0;      // additions and multiplications outside of products
  double double_products = 0;  // in double
  double tf32_products = 0;    // float with factors rounded to TF32, or plain float without TF32
  double half_products = 0;    // in float16 and bfloat16
  double link_bytes = 0;       // to the other chips of its machine, per direction
};

// Nothing if they are unknown, or if the device is present and can be measured.
std::optional<DevicePeaks> PeaksOf(const Device& device);

// Registers the peaks of a kind of device.
struct DevicePeaksRegistrar {
  using Find = std::optional<DevicePeaks> (*)(const Device& device);
  DevicePeaksRegistrar(DeviceKind kind, Find find);
};

}  // namespace caffe
