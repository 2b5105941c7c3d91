// Random nets. Names tell what an input holds; see input_values.hpp.
#pragma once

#include <cstdint>

#include "caffe/proto/caffe.pb.h"

namespace caffe::fuzz {

// A directed acyclic graph of up to some twenty layers on small blobs; the same for the same seed.
// Nearly all of them are valid; a net that the library refuses is no error of the generator's.
NetParameter GenerateNet(uint64_t seed);

}  // namespace caffe::fuzz
