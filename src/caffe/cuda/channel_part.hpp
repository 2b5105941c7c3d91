// For kernels that write some channels of a tensor whose other channels are already written.
#pragma once

#include "caffe/ops/kernel.hpp"

namespace caffe::cuda {

// True for the region Conv(x, w, bias) -> part, InsertChannels(part, whole) -> y if engines may
// compute it.
bool IsConvInto(const Op& op);

// Copies the input `whole` if output 0 does not share its memory; -1: there is none.
void KeepOtherChannels(const KernelContext& ctx, int whole);

}  // namespace caffe::cuda
