// Random nets. The names of inputs determine their values; see input_values.hpp.
#pragma once

#include <cstdint>

#include "caffe/proto/caffe.pb.h"

namespace caffe::fuzz {

// A directed acyclic graph of up to some twenty layers on small blobs; deterministic for a seed.
// Nearly all nets are valid; if the library refuses a net, this is not an error of the generator.
NetParameter GenerateNet(uint64_t seed);

}  // namespace caffe::fuzz
