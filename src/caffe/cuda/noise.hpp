// Data with which kernels are tried.
#pragma once

#include <cstddef>

#include "caffe/device/device.hpp"
#include "caffe/dtype.hpp"

namespace caffe::cuda {

// Fills memory of the device with normal noise, which repeats after a million values. It is the
// same in each call and depends on `operand`. Variances are at least 0.5.
enum class Noise { kNormal, kVariances };
void FillWithNoise(Device& device, DType type, void* to, size_t bytes, size_t operand,
                   Noise noise = Noise::kNormal);

// For any float type. 8-bit numbers get all bits set, which is -1 or 255.
void FillWithNaNs(Device& device, void* to, size_t bytes);

}  // namespace caffe::cuda
