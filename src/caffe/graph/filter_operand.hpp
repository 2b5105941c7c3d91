// Finds filters that may be channels-last.
#pragma once

#include "caffe/graph/graph.hpp"

namespace caffe {

// Index of the input that is the filter (K, C / group, height, width) of a convolution with
// channels-last images, or of its data gradient; -1 if the node has none. CUDA kernels take such a
// filter plain or channels-last (KRSC). CPU kernels take only plain filters, and so do kernels of
// 8-bit images, which quantize their filters.
int FilterOfChannelsLastImages(const Node& node);

}  // namespace caffe
