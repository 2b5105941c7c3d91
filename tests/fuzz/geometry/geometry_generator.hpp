// Random nets of one layer that slides a window or changes the extents of images, many of them with
// options and shapes at the edges of what can be counted.
#pragma once

#include <cstdint>

#include "caffe/proto/caffe.pb.h"

namespace caffe::fuzz {

// The same for the same seed. Most are valid and small; what a hostile one asks for is refused, or
// planned without being run.
NetParameter GenerateGeometry(uint64_t seed);

}  // namespace caffe::fuzz
