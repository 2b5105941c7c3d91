// Groups gradients into buckets. A bucket is reduced as one block of memory.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "caffe/dtype.hpp"

namespace caffe {

struct GradientSize {
  size_t bytes = 0;
  DType dtype = DType::kFloat;
};

struct GradientBucket {
  // Gradients [first, end) of the list, of one type of element.
  size_t first = 0, end = 0;
  size_t bytes = 0;  // with the padding after each gradient
  DType dtype = DType::kFloat;
};

// Bytes from a gradient's place in its bucket to that of the next one.
size_t PaddedBytes(size_t bytes);

// Buckets of consecutive gradients. A bucket ends when it has 1 / `buckets` of all bytes or the
// type changes, so there are at most so many for each run of one type. Throws InvalidArgument
// unless `buckets` is at least 1.
std::vector<GradientBucket> FormBuckets(std::span<const GradientSize> gradients, int buckets);

}  // namespace caffe
