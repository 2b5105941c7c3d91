// Checks a kernel of convolutions by its name.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "caffe/cpu/kernels/conv_check.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::testing {

// "" if the CPU's kernel of this name is right, otherwise what is wrong, or why it refuses.
inline std::string FaultOfKernel(const std::string& name, const Op& op,
                                 const std::vector<OperandDesc>& inputs,
                                 const std::vector<OperandDesc>& outputs) {
  const auto device = MakeDevice(DeviceKind::kCpu);
  const KernelRequest request{op, inputs, outputs, *device};
  for (const KernelCandidate& candidate :
       KernelRegistry::Get().Candidates(DeviceKind::kCpu, op.type())) {
    if (candidate.name != name) continue;
    const KernelOrRefusal answer = candidate.factory(request);
    if (const auto* refusal = std::get_if<Refusal>(&answer)) return refusal->reason;
    return cpu::FaultOfConv(request, std::get<Kernel>(answer)).value_or("");
  }
  return "there is no " + name;
}

}  // namespace caffe::testing
