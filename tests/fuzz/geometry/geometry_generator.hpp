// Random nets with one layer that slides a window or changes the extents of images, often with
// options and shapes at the limits of number ranges.
#pragma once

#include <cstdint>

#include "caffe/proto/caffe.pb.h"

namespace caffe::fuzz {

// Deterministic for a seed. Most nets are valid and small; a hostile one is refused, or planned
// without being run.
NetParameter GenerateGeometry(uint64_t seed);

}  // namespace caffe::fuzz
