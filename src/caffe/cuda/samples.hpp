// What kernels that are tried have written, to compare it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "caffe/device/device.hpp"
#include "caffe/dtype.hpp"

namespace caffe::cuda {

using Sample = std::vector<double>;

// Numbers of an array on the device, in at most `stretches` that have at most `length` elements.
Sample SampleOf(Device& device, DType type, const void* data, int64_t count, int64_t stretches,
                int64_t length);

// The norm of the difference over that of the second sample; not a number where one has such.
double Difference(const Sample& one, const Sample& other);

// Of several algorithms' samples of one result, those that most others agree with, up to rounding
// in any type; all of them where none has only numbers. Nothing: it did not run, and is left out.
std::vector<bool> Agreeing(std::span<const std::optional<Sample>> samples);

}  // namespace caffe::cuda
