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

// Numbers of an array on the device: all of them, or `stretches` (2 or more) of `length` elements,
// the first at its beginning, the last at its end.
Sample SampleOf(Device& device, DType type, const void* data, int64_t count, int64_t stretches,
                int64_t length);

// A sample of each output.
using Results = std::vector<Sample>;

// The norm of the difference over that of the second result, of the output where it is largest; not
// a number where one has such.
double LargestDifference(const Results& one, const Results& other);

// Of several algorithms' results for one problem, those that most others agree with, up to rounding
// in any type. Places where none has a number do not count: they lie between what is written.
// Nothing: it did not run, and is left out.
std::vector<bool> Agreeing(std::vector<std::optional<Results>> all);

}  // namespace caffe::cuda
