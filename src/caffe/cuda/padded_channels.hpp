// Convolutions of images with few channels, as in a net's first layer: vendors' engines read whole
// packs of channels, and are slow if a pixel has 3. Appending channels of zeros allows faster
// engines, at the cost of a copy of the images.
#pragma once

#include <vector>

#include "caffe/cuda/copied_operands.hpp"

namespace caffe::cuda {

// Numbers of channels that may be faster, in ascending order; empty if a request of Conv or
// ConvGradWeights has enough channels, has groups, or is not channels-last.
std::vector<int64_t> PaddedChannelCounts(const KernelRequest& request);

// Wraps the kernel that `make` creates for the request with `channels` channels, and removes the
// added channels from its results. The names of its algorithms end in that number.
KernelOrRefusal OnPaddedChannels(const KernelRequest& request, int64_t channels,
                                 const MakeConvolution& make);

}  // namespace caffe::cuda
