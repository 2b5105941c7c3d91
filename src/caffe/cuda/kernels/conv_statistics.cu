// A convolution by any kernel, and a pass over its result for the statistics: used if cuDNN has no
// engine for both (conv_cudnn.cpp).
#include "caffe/cuda/channel_statistics.hpp"
#include "caffe/ops/conv_statistics.hpp"

namespace caffe::cuda {
namespace {

using ops::ConvStatistics;

// Returns the first candidate for the convolution alone.
KernelOrRefusal ConvolutionAlone(const Op& conv, const KernelRequest& request) {
  const DType type = request.inputs[0].dtype;
  const Signature signature{type, type == DType::kDouble ? type : DType::kFloat};
  const auto& candidates = KernelRegistry::Get().Candidates(DeviceKind::kCuda, conv.type());
  KernelOrRefusal answer = Refusal{"there is no kernel of a convolution"};
  for (const KernelCandidate& candidate : candidates) {
    if (!candidate.Serves(signature)) continue;
    answer = candidate.factory(
        {conv, request.inputs, request.outputs.first(1), request.device, request.settings});
    if (std::holds_alternative<Kernel>(answer)) break;
  }
  return answer;
}

KernelOrRefusal MakeConvStatistics(const ConvStatistics& op, const KernelRequest& request) {
  KernelOrRefusal conv = ConvolutionAlone(Op(op.conv), request);
  Kernel* const kernel = std::get_if<Kernel>(&conv);
  if (kernel == nullptr) return conv;
  const ChannelStatistics statistics(op, request.outputs[0], request.device);
  kernel->run = [run = kernel->run, statistics](const KernelContext& ctx) {
    run(ctx);
    statistics.Run(ctx, ctx.workspace);
  };
  kernel->workspace_bytes = std::max(kernel->workspace_bytes, statistics.workspace_bytes());
  return conv;
}

// fuse-statistics checks the types of this kernel: those for which cuDNN has engines.
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ConvStatistics, "conv-statistics",
                              KernelRank::kGood, MakeConvStatistics,
                              {.signatures = {{DType::kFloat16, DType::kFloat}}});
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ConvStatistics, "conv-statistics-reference",
                              KernelRank::kReference, MakeConvStatistics);

}  // namespace
}  // namespace caffe::cuda
