// Log lines of debug_info: mean absolute values of blobs, parameters and gradients.
#pragma once

#include <map>
#include <vector>

#include "caffe/net.hpp"

namespace caffe {

// Logs values of a keep-all net, after its forward or backward pass.
void LogForwardValues(const Net& net);
void LogBackwardValues(const Net& net);

// Returns the values of each learnable parameter.
std::map<const Blob*, std::vector<double>> ParamValues(const Net& net);
// After an update: logs the parameters `before` it and the change that it made.
void LogUpdateValues(const Net& net, const std::map<const Blob*, std::vector<double>>& before);

}  // namespace caffe
