// A convolution by any kernel, whose result is then copied into its part of the whole tensor: used
// if cuDNN has no engine that writes there (conv_cudnn.cpp).
#include "caffe/cuda/channel_part.hpp"
#include "caffe/cuda/entries.hpp"
#include "caffe/cuda/kernels/channel_sums.cuh"
#include "caffe/cuda/vendor_types.hpp"
#include "caffe/ops/conv_into.hpp"

namespace caffe::cuda {
namespace {

using ops::ConvInto;

// Copies packs of N neighbouring channels of the part to the same channels of the whole.
template <typename T, int N>
struct CopyPart {
  const T* part;
  int64_t row, whole_row, offset;  // in packs
  T* whole;

  __device__ void operator()(int64_t i) const {
    int64_t within;
    const int64_t outer = Divide(i, row, &within);
    reinterpret_cast<Pack<T, N>*>(whole)[outer * whole_row + offset + within] =
        PackAt<T, N>(part, i);
  }
};

// Returns the first candidate for the convolution alone.
KernelOrRefusal PlainConvolution(const ConvInto& op, const KernelRequest& request,
                                 const OperandDesc& part) {
  const Op conv(op.conv);
  const DType type = part.dtype;
  const Signature signature{type, type == DType::kDouble ? type : DType::kFloat};
  const auto& candidates = KernelRegistry::Get().Candidates(DeviceKind::kCuda, conv.type());
  const size_t inputs = std::min<size_t>(request.inputs.size(), ConvInto::kWhole);
  KernelOrRefusal answer = Refusal{"there is no kernel of a convolution"};
  for (const KernelCandidate& candidate : candidates) {
    if (!candidate.Serves(signature)) continue;
    answer = candidate.factory({conv, request.inputs.first(inputs), std::span(&part, 1),
                                request.device, request.settings});
    if (std::holds_alternative<Kernel>(answer)) break;
  }
  return answer;
}

template <typename T>
void CopyIntoWhole(const KernelContext& ctx, const TensorView& part, int64_t offset) {
  const TensorView& whole = ctx.output(0);
  const Covered from = ChannelsOf(part), to = ChannelsOf(whole);
  const int64_t row = from.covered * from.inner, whole_row = to.covered * to.inner;
  const int64_t begin = offset * to.inner;
  constexpr int N = kPackSize<T>;
  const auto run = [&]<int kPack>(std::integral_constant<int, kPack>) {
    ForEach(ctx, part.count() / kPack,
            CopyPart<T, kPack>{part.as<const T>(), row / kPack, whole_row / kPack, begin / kPack,
                               whole.as<T>()});
  };
  const bool has_packs = row % N == 0 && whole_row % N == 0 && begin % N == 0 &&
                         AreAligned<T>({part.data, whole.data});
  has_packs ? run(std::integral_constant<int, N>{}) : run(std::integral_constant<int, 1>{});
}

KernelOrRefusal MakeConvInto(const ConvInto& op, const KernelRequest& request) {
  OperandDesc part;
  static_cast<TensorDesc&>(part) = ConvInto::Part(request.outputs[0], request.inputs[ConvInto::kW]);
  KernelOrRefusal conv = PlainConvolution(op, request, part);
  Kernel* const kernel = std::get_if<Kernel>(&conv);
  if (kernel == nullptr) return conv;
  const size_t part_bytes = AlignWorkspace(part.bytes());
  kernel->run = [run = kernel->run, part, part_bytes,
                 offset = op.offset](const KernelContext& ctx) {
    KeepOtherChannels(ctx);
    TensorView result;
    static_cast<TensorDesc&>(result) = part;
    result.data = ctx.workspace;
    KernelContext inner = ctx;
    inner.inputs = ctx.inputs.first(std::min<size_t>(ctx.inputs.size(), ConvInto::kWhole));
    inner.outputs = std::span(&result, 1);
    inner.workspace = static_cast<char*>(ctx.workspace) + part_bytes;
    run(inner);
    VisitFloat(part.dtype, [&]<typename T>(TypeTag<T>) { CopyIntoWhole<T>(ctx, result, offset); });
  };
  kernel->workspace_bytes += part_bytes;
  return conv;
}

// write-into-concats checks the types of the first kernel: those for which cuDNN has engines.
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ConvInto, "conv-into", KernelRank::kGood,
                              MakeConvInto,
                              {.signatures = {{DType::kFloat, DType::kFloat},
                                              {DType::kFloat16, DType::kFloat},
                                              {DType::kBFloat16, DType::kFloat}},
                               .fuses = IsReluAlone});
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ConvInto, "conv-into-reference",
                              KernelRank::kReference, MakeConvInto, {.fuses = IsReluAlone});

}  // namespace

void KeepOtherChannels(const KernelContext& ctx) {
  if (!ctx.has_input(ConvInto::kWhole)) return;
  const TensorView &from = ctx.input(ConvInto::kWhole), &to = ctx.output(0);
  if (from.data != to.data) ctx.stream->Copy(to.data, from.data, to.bytes());
}

}  // namespace caffe::cuda
