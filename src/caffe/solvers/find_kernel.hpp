// Finds kernels for computations of a solver outside its net's plan.
#pragma once

#include "caffe/graph/graph.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe {

// Returns the first candidate of the plan's device that accepts, with the settings that the plan
// was compiled with. Throws Unsupported with the refusal reasons.
Kernel FindKernel(const Op& op, std::span<const OperandDesc> inputs,
                  std::span<const OperandDesc> outputs, const Graph& graph);

OperandDesc Present(const TensorDesc& desc);
OperandDesc Absent();

}  // namespace caffe
