#include "caffe/ops/conv_into.hpp"

#include <cstring>

#include "caffe/core/cache_lines.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/int8.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

using ops::ConvInto;

void CopyIntoWhole(const TensorView& part, int64_t offset, const TensorView& whole) {
  const ops::CoveredView from(part, {1, 1}), to(whole, {1, 1});
  const size_t size = SizeOf(part.dtype);
  const size_t row = static_cast<size_t>(from.covered * from.inner) * size;
  const size_t whole_row = static_cast<size_t>(to.covered * to.inner) * size;
  const int64_t grain = kPointwiseGrain / (from.covered * from.inner + 1) + 1;
  ParallelFor(from.outer, grain, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      std::memcpy(whole.as<char>() + static_cast<size_t>(o) * whole_row +
                      static_cast<size_t>(offset * to.inner) * size,
                  part.as<char>() + static_cast<size_t>(o) * row, row);
    }
  });
}

// Returns the best kernel for the convolution alone.
KernelOrRefusal MakeBest(const Op& conv, const KernelRequest& request) {
  const ops::Epilogue& epilogue = conv.As<ops::Conv>()->epilogue;
  const TensorDesc& x = request.inputs[ConvInto::kX];
  const DType data = Is8Bit(x.dtype) ? DType::kInt8 : x.dtype;
  const DType compute = data == DType::kDouble ? data : DType::kFloat;
  for (const KernelCandidate& candidate :
       KernelRegistry::Get().Candidates(DeviceKind::kCpu, conv.type())) {
    const KernelTraits& traits = candidate.traits;
    const bool is_for_it = candidate.Serves({data, compute}) &&
                           (!traits.layout || *traits.layout == x.layout) &&
                           (epilogue.empty() || (traits.fuses && traits.fuses(epilogue)));
    if (!is_for_it) continue;
    KernelOrRefusal answer = candidate.factory(request);
    if (std::holds_alternative<Kernel>(answer)) return answer;
  }
  return Refusal{"no kernel for the convolution"};
}

// Fallback if no kernel can write between other channels: copies the result there.
KernelOrRefusal MakeConvInto(const ConvInto& op, const KernelRequest& request) {
  const Op plain(op.conv);
  OperandDesc part;
  static_cast<TensorDesc&>(part) = ConvInto::Part(request.outputs[0], request.inputs[ConvInto::kW]);
  const size_t inputs = std::min<size_t>(request.inputs.size(), ConvInto::kWhole);
  const size_t part_bytes = static_cast<size_t>(WholeLines(static_cast<int64_t>(part.bytes())));
  KernelOrRefusal conv = MakeBest(plain, {plain, request.inputs.first(inputs), std::span(&part, 1),
                                          request.device, request.settings});
  Kernel* const kernel = std::get_if<Kernel>(&conv);
  if (kernel == nullptr) return conv;
  kernel->run = [run = kernel->run, part, part_bytes, inputs,
                 offset = op.offset](const KernelContext& ctx) {
    const TensorView& whole = ctx.output(0);
    if (ctx.has_input(ConvInto::kWhole)) CopyBytes(ctx.input(ConvInto::kWhole), whole);
    TensorView result;
    static_cast<TensorDesc&>(result) = part;
    result.data = ctx.workspace;
    KernelContext inner = ctx;
    inner.inputs = ctx.inputs.first(std::min(ctx.inputs.size(), inputs));
    inner.outputs = std::span(&result, 1);
    inner.workspace = static_cast<char*>(ctx.workspace) + part_bytes;
    run(inner);
    CopyIntoWhole(result, offset, whole);
  };
  kernel->workspace_bytes += part_bytes;
  return conv;
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ConvInto, "conv-into-reference",
                              KernelRank::kReference, MakeConvInto, {.fuses = FusesAny});
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ConvInto, "conv-into-int8-reference",
                              KernelRank::kReference, MakeConvInto,
                              ops::Int8Traits(ops::FusesNumbers));

}  // namespace
}  // namespace caffe::cpu
