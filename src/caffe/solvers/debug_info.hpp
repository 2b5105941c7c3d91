// Log lines of debug_info: mean absolute values of blobs, parameters and gradients.
#pragma once

#include "caffe/net.hpp"

namespace caffe {

// Of a keep-all net, after its forward and its backward pass.
void LogForwardValues(const Net& net);
void LogBackwardValues(const Net& net);
// Before an update: parameters, and the history that the update subtracted last.
void LogUpdateValues(const Net& net, const std::vector<std::shared_ptr<Blob>>& history);

}  // namespace caffe
