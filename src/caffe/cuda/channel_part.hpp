// Kernels that write some channels of a tensor whose others are there already.
#pragma once

#include "caffe/ops/kernel.hpp"

namespace caffe::cuda {

// Of ConvInto: copies `whole` where the result does not have its memory.
void KeepOtherChannels(const KernelContext& ctx);

}  // namespace caffe::cuda
