// What a chip can do at most, as its data sheet says: for estimates where the chip is not there.
#pragma once

#include <optional>

#include "caffe/device/device.hpp"

namespace caffe {

// Per second. Products are those of matrices and convolutions, on tensor cores where there are any,
// of dense matrices.
struct DevicePeaks {
  double memory_bytes = 0;     // read and written together
  double float_flops = 0;      // additions and multiplications, beside products
  double double_products = 0;  // in double
  double tf32_products = 0;    // in float with factors rounded to TF32; without TF32 those in float
  double half_products = 0;    // in float16 and bfloat16
  double link_bytes = 0;       // to the other chips of its machine, in each direction
};

// Nothing where they are not known, or the device is there and can be measured.
std::optional<DevicePeaks> PeaksOf(const Device& device);

// What a kind of device registers that knows its peaks.
struct DevicePeaksRegistrar {
  using Find = std::optional<DevicePeaks> (*)(const Device& device);
  DevicePeaksRegistrar(DeviceKind kind, Find find);
};

}  // namespace caffe
