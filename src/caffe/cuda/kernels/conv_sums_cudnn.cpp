// Convolutions by cuDNN whose engines also compute the sums that the next batch normalization
// needs.
#include <algorithm>

#include "caffe/cuda/channel_statistics.hpp"
#include "caffe/cuda/kernels/cudnn_convolution.hpp"

namespace caffe::cuda {
namespace {

// Numbers of the tensors in the graph, in addition to those of every convolution.
enum SumTensor : int64_t { kSums = kFirstEntry, kSquares };
// Returns an engine that also sums y and its squares, or the reason why there is none.
std::variant<std::shared_ptr<CudnnGraph>, std::string> PlanStatistics(const ConvStatistics& op,
                                                                      const KernelRequest& request,
                                                                      const ConvProblem& problem) {
  auto conv = NewGraph(request, problem);
  fe::graph::Graph& graph = conv->graph();
  const CudnnTensor y = graph.conv_fprop(
      conv->Input(kX, problem.x),
      conv->Input(kW, problem.filter, problem.filter_strides(), problem.filter_type),
      problem.Window<fe::graph::Conv_fprop_attributes>());
  conv->Output(kY, y, problem.y);
  const auto [sums, squares] = graph.genstats(y, fe::graph::Genstats_attributes());
  conv->ChannelOutput(kSums, sums, problem.filter[0]);
  conv->ChannelOutput(kSquares, squares, problem.filter[0]);
  std::string why = conv->Plan(ChoiceOf(request, problem, op.conv.choice, "conv+statistics"));
  if (!why.empty()) return why;
  return conv;
}

KernelOrRefusal StatisticsKernel(const ConvStatistics& op, const KernelRequest& request,
                                 const ConvProblem& problem) {
  using Conv = ConvStatistics;
  const auto planned = PlanStatistics(op, request, problem);
  if (const std::string* why = std::get_if<std::string>(&planned)) return Refusal{*why};
  const auto conv = std::get<std::shared_ptr<CudnnGraph>>(planned);
  const FilterPlace filter(problem);
  const size_t sum_bytes = AlignWorkspace(static_cast<size_t>(problem.filter[0]) * sizeof(float));
  const size_t place_bytes = filter.bytes() + 2 * sum_bytes;
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  void* const sums = Behind(ctx.workspace, filter.bytes());
                  void* const squares = Behind(sums, sum_bytes);
                  conv->Run({{kX, ctx.input(Conv::kX).data},
                             {kW, filter.ToKrsc(ctx, ctx.input(Conv::kW))},
                             {kY, ctx.output(Conv::kY).data},
                             {kSums, sums},
                             {kSquares, squares}},
                            Behind(ctx.workspace, place_bytes), StreamOf(ctx));
                  StatisticsOfSums(op, ctx, static_cast<const float*>(sums),
                                   static_cast<const float*>(squares));
                },
                place_bytes + conv->workspace_bytes(), filter.NamesOf(conv->engines())};
}

constexpr const char* kStatisticsName = "conv-statistics-cudnn";

KernelOrRefusal MakeConvStatistics(const ops::Fused& region, const KernelRequest& request) {
  const ConvStatistics op(region);
  const ConvProblem problem = ConvProblem::Of(request.inputs[0], request.outputs[0],
                                              request.inputs[ConvStatistics::kW], op.conv.geometry);
  if (std::string why = Unfit(problem); !why.empty()) return Refusal{why};
  if (problem.geometry.spatial_axes() != 2) return Refusal{"its sums are for two spatial axes"};
  if (problem.filter_type != problem.x.dtype) return Refusal{"x and w are of two types"};
  KernelOrRefusal fused = StatisticsKernel(op, request, problem);
  Kernel* const kernel = std::get_if<Kernel>(&fused);
  if (kernel == nullptr) return fused;
  return Checked(request, std::move(*kernel), [&] { return OtherThan(kStatisticsName, request); });
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::Fused, kStatisticsName, KernelRank::kBest,
                              MakeConvStatistics,
                              {.signatures = {{DType::kFloat16, DType::kFloat}},
                               .is_for = ConvStatistics::IsFor,
                               .why_not = ConvStatistics::WhyNot});

const AheadFactoryRegistrar sums_ahead[] = {
    {DeviceKind::kCuda, typeid(ops::Fused), kStatisticsName, Ahead(MakeConvStatistics)},
};

}  // namespace
}  // namespace caffe::cuda
