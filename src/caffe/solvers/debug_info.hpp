// Log lines of debug_info: mean absolute values of blobs, parameters and gradients.
#pragma once

#include <map>
#include <vector>

#include "caffe/net.hpp"

namespace caffe {

// Of a keep-all net, after its forward and its backward pass.
void LogForwardValues(const Net& net);
void LogBackwardValues(const Net& net);

// Each learnable parameter's values.
std::map<const Blob*, std::vector<double>> ParamValues(const Net& net);
// After an update: parameters as they were `before` it, and what it took from them.
void LogUpdateValues(const Net& net, const std::map<const Blob*, std::vector<double>>& before);

}  // namespace caffe
