// For kernels that write some channels of a tensor whose other channels are already written.
#pragma once

#include "caffe/ops/kernel.hpp"

namespace caffe::cuda {

// For ConvInto: copies `whole` if the result does not share its memory.
void KeepOtherChannels(const KernelContext& ctx);

}  // namespace caffe::cuda
