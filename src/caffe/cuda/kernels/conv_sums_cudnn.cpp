// Convolutions by cuDNN whose engines also compute the sums that an adjacent batch normalisation
// needs.
#include <algorithm>

#include "caffe/cuda/channel_statistics.hpp"
#include "caffe/cuda/kernels/cudnn_convolution.hpp"
#include "caffe/cuda/norm_channels.hpp"
#include "caffe/ops/conv_grad_norm.hpp"
#include "caffe/ops/conv_statistics.hpp"

namespace caffe::cuda {
namespace {

// Numbers of the tensors in the graphs, in addition to those of every convolution.
enum SumTensor : int64_t { kSums = kFirstEntry, kSquares };
enum NormTensor : int64_t {
  kNormX = kFirstEntry,
  kMean,
  kInverse,
  kGamma,
  kBeta,
  kSum,
  kDot,
  kOfDy,
  kOfX,
  kRest
};

// Returns an engine that also sums y and its squares, or the reason why there is none.
std::variant<std::shared_ptr<CudnnGraph>, std::string> PlanStatistics(const ops::ConvStatistics& op,
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

KernelOrRefusal StatisticsKernel(const ops::ConvStatistics& op, const KernelRequest& request,
                                 const ConvProblem& problem) {
  using Conv = ops::ConvStatistics;
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

KernelOrRefusal MakeConvStatistics(const ops::ConvStatistics& op, const KernelRequest& request) {
  const ConvProblem problem =
      ConvProblem::Of(request.inputs[0], request.outputs[0],
                      request.inputs[ops::ConvStatistics::kW], op.conv.geometry);
  if (std::string why = Unfit(problem); !why.empty()) return Refusal{why};
  if (problem.filter_type != problem.x.dtype) return Refusal{"x and w are of two types"};
  KernelOrRefusal fused = StatisticsKernel(op, request, problem);
  Kernel* const kernel = std::get_if<Kernel>(&fused);
  if (kernel == nullptr) return fused;
  return Checked(request, std::move(*kernel), [&] { return OtherThan(kStatisticsName, request); });
}

using ops::ConvGradNorm;

// The input of the ReLU after the normalisation.
CudnnTensor Normalised(CudnnGraph& conv, const CudnnTensor& x, const CudnnTensor& mean,
                       const CudnnTensor& inverse, const CudnnTensor& gamma, int64_t channels) {
  const auto step = [&](const CudnnTensor& a, const CudnnTensor& b, fe::PointwiseMode_t mode) {
    return conv.graph().pointwise(a, b, fe::graph::Pointwise_attributes().set_mode(mode));
  };
  CudnnTensor y = step(x, mean, fe::PointwiseMode_t::SUB);
  y = step(y, inverse, fe::PointwiseMode_t::MUL);
  y = step(y, gamma, fe::PointwiseMode_t::MUL);
  return step(y, conv.ChannelInput(kBeta, channels), fe::PointwiseMode_t::ADD);
}

// Returns an engine for dz and its sums, or the reason why there is none.
std::variant<std::shared_ptr<CudnnGraph>, std::string> PlanGradNorm(const ConvGradNorm& op,
                                                                    const KernelRequest& request,
                                                                    const ConvProblem& problem) {
  auto conv = NewGraph(request, problem);
  fe::graph::Graph& graph = conv->graph();
  const fe::DataType_t type = CudnnType(problem.x.dtype);
  const int64_t channels = problem.x.shape[1];
  const CudnnTensor gradient = graph.conv_dgrad(
      conv->Input(kY, problem.y),
      conv->Input(kW, problem.filter, problem.filter_strides(), problem.filter_type),
      problem.Window<fe::graph::Conv_dgrad_attributes>());
  gradient->set_dim(problem.x.shape.dims()).set_stride(StridesOf(problem.x)).set_data_type(type);
  const CudnnTensor x = conv->Input(kNormX, problem.x), mean = conv->ChannelInput(kMean, channels),
                    inverse = conv->ChannelInput(kInverse, channels),
                    gamma = conv->ChannelInput(kGamma, channels);
  const CudnnTensor dz =
      graph.pointwise(gradient, Normalised(*conv, x, mean, inverse, gamma, channels),
                      fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::RELU_BWD));
  dz->set_data_type(type);
  const auto [dot, sum, of_dy, of_x, rest] =
      graph.dbn_weight(dz, x, mean, inverse, gamma, fe::graph::DBN_weight_attributes());
  conv->ChannelOutput(kDot, dot, channels);
  conv->ChannelOutput(kSum, sum, channels);
  conv->ChannelOutput(kOfDy, of_dy, channels);
  conv->ChannelOutput(kOfX, of_x, channels);
  conv->ChannelOutput(kRest, rest, channels);
  conv->Output(kX, dz, problem.x);
  std::string why =
      conv->Plan(ChoiceOf(request, problem, op.conv.choice, "conv dx+relu grad+sums"));
  if (!why.empty()) return why;
  return conv;
}

KernelOrRefusal GradNormKernel(const ConvGradNorm& op, const KernelRequest& request,
                               const ConvProblem& problem) {
  using Norm = ConvGradNorm;
  const auto planned = PlanGradNorm(op, request, problem);
  if (const std::string* why = std::get_if<std::string>(&planned)) return Refusal{*why};
  const auto conv = std::get<std::shared_ptr<CudnnGraph>>(planned);
  const FilterPlace filter(problem);
  // Space for the inverse deviations and three unused results.
  const size_t channel_bytes =
      AlignWorkspace(static_cast<size_t>(problem.x.shape[1]) * sizeof(float));
  const size_t place_bytes = filter.bytes() + 4 * channel_bytes;
  return Kernel{"",
                [=, eps = op.eps](const KernelContext& ctx) {
                  const auto channels = [&](size_t i) {
                    return Behind(ctx.workspace, filter.bytes() + i * channel_bytes);
                  };
                  InverseDeviations(ctx, ctx.input(Norm::kVariance), eps,
                                    static_cast<float*>(channels(0)));
                  conv->Run({{kY, ctx.input(Norm::kDy).data},
                             {kW, filter.ToKrsc(ctx, ctx.input(Norm::kW))},
                             {kNormX, ctx.input(Norm::kX).data},
                             {kMean, ctx.input(Norm::kMean).data},
                             {kInverse, channels(0)},
                             {kGamma, ctx.input(Norm::kGamma).data},
                             {kBeta, ctx.input(Norm::kBeta).data},
                             {kX, ctx.output(Norm::kDz).data},
                             {kSum, ctx.output(Norm::kSum).data},
                             {kDot, ctx.output(Norm::kDot).data},
                             {kOfDy, channels(1)},
                             {kOfX, channels(2)},
                             {kRest, channels(3)}},
                            Behind(ctx.workspace, place_bytes), StreamOf(ctx));
                },
                place_bytes + conv->workspace_bytes(), filter.NamesOf(conv->engines())};
}

constexpr const char* kGradNormName = "conv-grad-norm-cudnn";

bool HasFloatChannels(const KernelRequest& request) {
  using Norm = ConvGradNorm;
  const auto is_float = [](const OperandDesc& operand) {
    return operand.present && operand.dtype == DType::kFloat;
  };
  return std::ranges::all_of(request.inputs.subspan(Norm::kMean), is_float) &&
         std::ranges::all_of(request.outputs.subspan(Norm::kSum), is_float);
}

KernelOrRefusal MakeConvGradNorm(const ConvGradNorm& op, const KernelRequest& request) {
  const ConvProblem problem = ConvProblem::Of(request.outputs[0], request.inputs[ConvGradNorm::kDy],
                                              request.inputs[ConvGradNorm::kW], op.conv.geometry);
  if (std::string why = Unfit(problem); !why.empty()) return Refusal{why};
  if (problem.filter_type != problem.x.dtype) return Refusal{"dy and w are of two types"};
  if (!HasFloatChannels(request)) return Refusal{"statistics, scales and sums have to be float"};
  KernelOrRefusal fused = GradNormKernel(op, request, problem);
  Kernel* const kernel = std::get_if<Kernel>(&fused);
  if (kernel == nullptr) return fused;
  return Checked(request, std::move(*kernel), [&] { return OtherThan(kGradNormName, request); },
                 {ConvGradNorm::kVariance});
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::ConvStatistics, kStatisticsName,
                              KernelRank::kBest, MakeConvStatistics,
                              {.signatures = {{DType::kFloat16, DType::kFloat}}});

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ConvGradNorm, kGradNormName, KernelRank::kBest,
                              MakeConvGradNorm, {.signatures = {{DType::kFloat16, DType::kFloat}}});

const AheadFactoryRegistrar ahead_registrars[] = {
    {DeviceKind::kCuda, typeid(ops::ConvStatistics), kStatisticsName, Ahead(MakeConvStatistics)},
    {DeviceKind::kCuda, typeid(ConvGradNorm), kGradNormName, Ahead(MakeConvGradNorm)},
};

}  // namespace
}  // namespace caffe::cuda
