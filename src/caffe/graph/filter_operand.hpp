// Filters that may lie channels-last.
#pragma once

#include "caffe/graph/graph.hpp"

namespace caffe {

// The number of the node's input that is the filter (K, C / group, height, width) of a convolution
// whose images lie channels-last, and of its data gradient; -1: it reads none. Kernels of CUDA take
// such a filter plain or channels-last (KRSC); those of CPUs take plain ones alone, and so do kernels
// of 8-bit images, which quantise their filters.
int FilterOfChannelsLastImages(const Node& node);

}  // namespace caffe
