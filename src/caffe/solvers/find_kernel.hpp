// Kernels for what a solver computes outside of its net's plan.
#pragma once

#include "caffe/graph/graph.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe {

// The first candidate of the plan's device that serves, by the settings that the plan was made
// with. Throws Unsupported with what they refused for.
Kernel FindKernel(const Op& op, std::span<const OperandDesc> inputs,
                  std::span<const OperandDesc> outputs, const Graph& graph);

OperandDesc Present(const TensorDesc& desc);
OperandDesc Absent();

}  // namespace caffe
