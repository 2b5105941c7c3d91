// Convolutions of images of few channels, as of a net's first layer: vendors' engines read whole
// packs of channels, and are slow where a pixel has 3. With channels of zeros behind those that
// there are, others serve, at the cost of a copy of the images.
#pragma once

#include <vector>

#include "caffe/cuda/copied_operands.hpp"

namespace caffe::cuda {

// Numbers of channels that may be faster, the smallest first; none where a request of Conv or
// ConvGradWeights has enough of them, has groups, or channels that do not lie last.
std::vector<int64_t> PaddedChannelCounts(const KernelRequest& request);

// What the kernel that `make` makes of the request with so many channels computes, without those
// that were added. The names of its algorithms end in their number.
KernelOrRefusal OnPaddedChannels(const KernelRequest& request, int64_t channels,
                                 const MakeConvolution& make);

}  // namespace caffe::cuda
