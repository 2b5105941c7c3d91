// The kernel that serves every region: it runs a kernel of each member.
#pragma once

#include "caffe/ops/fused.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::ops {

// The members run by the best kernels of the device that accept them, with the inner tensors in the
// workspace.
CAFFE_EXPORT KernelOrRefusal MakeInTurn(const Fused& op, const KernelRequest& request);

// Every floating-point type and 8 bits.
CAFFE_EXPORT KernelTraits InTurnTraits();

}  // namespace caffe::ops
