#include "caffe/solvers/find_kernel.hpp"

#include "caffe/error.hpp"

namespace caffe {

Kernel FindKernel(const Op& op, std::span<const OperandDesc> inputs,
                  std::span<const OperandDesc> outputs, const Graph& graph) {
  Device& device = *graph.options.device;
  std::string refusals;
  for (const KernelCandidate& candidate :
       KernelRegistry::Get().Candidates(device.kind(), op.type())) {
    KernelOrRefusal answer =
        candidate.factory({op, inputs, outputs, device, graph.options.kernels});
    if (Kernel* kernel = std::get_if<Kernel>(&answer)) return std::move(*kernel);
    refusals += StrCat("; ", candidate.name, ": ", std::get<Refusal>(answer).reason);
  }
  throw Unsupported(
      StrCat("solver: no kernel for ", op.name(), " on ", Name(device.kind()), refusals));
}

OperandDesc Present(const TensorDesc& desc) {
  OperandDesc operand;
  static_cast<TensorDesc&>(operand) = desc;
  return operand;
}

OperandDesc Absent() {
  OperandDesc operand;
  operand.present = false;
  return operand;
}

}  // namespace caffe
