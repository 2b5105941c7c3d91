#include "caffe/ops/conv_pair.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "caffe/core/cache_lines.hpp"

namespace caffe::ops {
namespace {

constexpr Signature kNumbers = {DType::kInt8, DType::kFloat};

// Returns the reference kernel of a convolution, or why there is none.
KernelOrRefusal MakeReference(const Conv& conv, std::span<const OperandDesc> inputs,
                              const OperandDesc& output, const KernelRequest& request) {
  const Op op(conv);
  const DType dtype = inputs[Conv::kX].dtype;
  const Signature signature = Is8Bit(dtype) ? kNumbers : Signature{dtype, dtype};
  const auto& candidates = KernelRegistry::Get().Candidates(request.device.kind(), op.type());
  const auto reference =
      std::find_if(candidates.rbegin(), candidates.rend(),
                   [&](const KernelCandidate& candidate) { return candidate.Serves(signature); });
  CAFFE_ASSERT(reference != candidates.rend());
  return reference->factory({op, inputs, std::span(&output, 1), request.device, request.settings});
}

}  // namespace

TensorDesc ConvPair::Between(const TensorDesc& x, const TensorDesc& second_w) const {
  std::vector<int64_t> dims = {x.shape[0], second_w.shape[1] * second.geometry.group};
  for (int axis = 0; axis < first.geometry.spatial_axes(); ++axis)
    dims.push_back(first.geometry.OutputSize(axis, x.shape[axis + 2]));
  if (!Is8Bit(x.dtype)) return {Shape(dims), x.dtype, x.layout};
  return {Shape(dims), between, x.layout, between_scale};
}

double ConvPair::Flops(std::span<const TensorDesc> inputs,
                       std::span<const TensorDesc> outputs) const {
  const TensorDesc image = Between(inputs[kX], inputs[kSecondW]);
  return first.Flops(inputs, std::span(&image, 1)) + second.Flops(std::span(&image, 1), outputs);
}

KernelOrRefusal MakeInTurn(const ConvPair& op, const KernelRequest& request) {
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

}  // namespace caffe::ops
