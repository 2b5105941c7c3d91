// Kernels for what a solver computes outside of its net's plan.
#pragma once

#include "caffe/ops/kernel.hpp"

namespace caffe {

// The first candidate of the device that serves. Throws Unsupported with what they refused for.
Kernel FindKernel(const Op& op, std::span<const OperandDesc> inputs,
                  std::span<const OperandDesc> outputs, Device& device);

OperandDesc Present(const TensorDesc& desc);
OperandDesc Absent();

}  // namespace caffe
