#include "caffe/ops/conv_pair.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "caffe/core/cache_lines.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

using ops::Conv;
using ops::ConvPair;

constexpr Signature kNumbers = {DType::kInt8, DType::kFloat};

// The reference kernel of a convolution, or why there is none.
KernelOrRefusal MakeReference(const Conv& conv, std::span<const OperandDesc> inputs,
                              const OperandDesc& output, const KernelRequest& request) {
  const Op op(conv);
  const DType dtype = inputs[Conv::kX].dtype;
  const Signature signature = Is8Bit(dtype) ? kNumbers : Signature{dtype, dtype};
  const auto& candidates = KernelRegistry::Get().Candidates(DeviceKind::kCpu, op.type());
  const auto reference =
      std::find_if(candidates.rbegin(), candidates.rend(),
                   [&](const KernelCandidate& candidate) { return candidate.Serves(signature); });
  CAFFE_ASSERT(reference != candidates.rend());
  return reference->factory({op, inputs, std::span(&output, 1), request.device, request.settings});
}

// One after the other, with the image between them in the workspace. No plan chooses it. In 16 bits
// that image would be rounded, which the op's meaning does not have.
KernelOrRefusal MakeConvPair(const ConvPair& op, const KernelRequest& request) {
  constexpr size_t kOfFirst = ConvPair::kSecondW;
  OperandDesc between;
  static_cast<TensorDesc&>(between) =
      op.Between(request.inputs[ConvPair::kX], request.inputs[ConvPair::kSecondW]);
  std::vector<OperandDesc> of_second = {between};
  of_second.insert(of_second.end(), request.inputs.begin() + kOfFirst, request.inputs.end());
  KernelOrRefusal first = MakeReference(op.first, request.inputs.first(kOfFirst), between, request);
  KernelOrRefusal second = MakeReference(op.second, of_second, request.outputs[0], request);
  for (KernelOrRefusal* one : {&first, &second}) {
    if (std::holds_alternative<Refusal>(*one)) return std::move(*one);
  }
  const std::array kernels = {std::get<Kernel>(first), std::get<Kernel>(second)};
  const auto place = static_cast<size_t>(WholeLines(static_cast<int64_t>(between.bytes())));
  const auto run = [kernels, between, place](const KernelContext& ctx) {
    TensorView image;
    static_cast<TensorDesc&>(image) = between;
    image.data = ctx.workspace;
    KernelContext inner = ctx;
    inner.workspace = static_cast<char*>(ctx.workspace) + place;
    inner.inputs = ctx.inputs.first(kOfFirst);
    inner.outputs = std::span(&image, 1);
    kernels[0].run(inner);
    std::vector<TensorView> inputs = {image};
    inputs.insert(inputs.end(), ctx.inputs.begin() + kOfFirst, ctx.inputs.end());
    inner.inputs = inputs;
    inner.outputs = ctx.outputs;
    kernels[1].run(inner);
  };
  return Kernel{"", run, place + std::max(kernels[0].workspace_bytes, kernels[1].workspace_bytes)};
}

CAFFE_REGISTER_KERNEL_FACTORY(
    DeviceKind::kCpu, ConvPair, "conv-pair-reference", KernelRank::kReference, MakeConvPair,
    {.signatures = {{DType::kDouble, DType::kDouble}, {DType::kFloat, DType::kFloat}, kNumbers}});

}  // namespace
}  // namespace caffe::cpu
