// Losses of random nets.
#pragma once

#include "tests/fuzz/dag/net_writer.hpp"

namespace caffe::fuzz {

// Adds a loss on some blob.
void AddLoss(NetWriter& net);

}  // namespace caffe::fuzz
