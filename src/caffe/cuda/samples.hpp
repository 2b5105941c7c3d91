// Samples of the outputs of kernels under test, for comparison.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "caffe/device/device.hpp"
#include "caffe/dtype.hpp"

namespace caffe::cuda {

using Sample = std::vector<double>;

// Elements of an array on the device: all of them, or `stretches` (2 or more) ranges of `length`
// elements, the first at its beginning, the last at its end.
Sample SampleOf(Device& device, DType type, const void* data, int64_t count, int64_t stretches,
                int64_t length);

// One sample per output.
using Results = std::vector<Sample>;

// The relative norm of the difference to the second result, for the output where it is largest; NaN
// if one of them contains a NaN.
double LargestDifference(const Results& one, const Results& other);

// Compares the results of several algorithms for one problem: true for those that agree with most
// others, up to rounding in any type. Elements that are NaN in all results do not count, because
// they lie in gaps of the output. An empty result is that of an algorithm that did not run, and is
// false.
std::vector<bool> Agreeing(std::vector<std::optional<Results>> all);

}  // namespace caffe::cuda
