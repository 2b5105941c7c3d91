// Numbers with which kernels are tried.
#pragma once

#include <cstddef>

#include "caffe/device/device.hpp"
#include "caffe/dtype.hpp"

namespace caffe::cuda {

// Fills memory of the device with normal noise, which repeats after a million values. Each time the
// same; other numbers for another `operand`. Variances are no less than half.
enum class Noise { kNormal, kVariances };
void FillWithNoise(Device& device, DType type, void* to, size_t bytes, size_t operand,
                   Noise noise = Noise::kNormal);

// Of any type of float. 8-bit numbers get all bits, which is -1 or 255.
void FillWithNaNs(Device& device, void* to, size_t bytes);

}  // namespace caffe::cuda
