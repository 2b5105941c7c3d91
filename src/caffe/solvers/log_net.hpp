// What Caffe's log says of a net that was built.
#pragma once

#include "caffe/net.hpp"

namespace caffe {

// Which layers learn or hand gradients on, the last first, and the outputs.
void LogNet(const Net& net);

}  // namespace caffe
