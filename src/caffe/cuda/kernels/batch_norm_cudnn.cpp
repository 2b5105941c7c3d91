// Batch normalisation and its gradient by cuDNN, if an engine was timed to be faster than our
// kernels: it can keep small images on the chip between the two passes.
#include <algorithm>

#include "caffe/cuda/kernels/cudnn_convolution.hpp"
#include "caffe/cuda/norm_channels.hpp"
#include "caffe/ops/norm.hpp"

namespace caffe::cuda {
namespace {

using ops::BatchNorm;
using ops::BatchNormGrad;

// Numbers of the tensors in the graphs.
enum NormTensor : int64_t {
  kImages,
  kResult,
  kAdded,
  kGradients,
  kMeans,
  kInverses,
  kGammas,
  kBetas,
  kDgammas,
  kDbetas
};

bool Has(std::span<const OperandDesc> operands, size_t i) {
  return i < operands.size() && operands[i].present;
}

bool AreFloats(std::span<const OperandDesc> operands, std::initializer_list<size_t> which) {
  return std::ranges::all_of(
      which, [&](size_t i) { return Has(operands, i) && operands[i].dtype == DType::kFloat; });
}

// Returns why cuDNN is not used; empty if it may be.
std::string UnfitImages(const KernelRequest& request) {
  const OperandDesc& x = request.inputs[0];
  if (!request.device.is_described() && !AreAlgorithmsTimed(request))
    return "it serves only where it was timed to be faster";
  if (x.shape.num_axes() != 4 || x.layout != Layout::kChannelsLast)
    return "only images whose channels lie last";
  if (x.shape[1] * static_cast<int64_t>(SizeOf(x.dtype)) % 16 != 0)
    return "channels do not lie in whole packs of 16 bytes";
  return "";
}

size_t ChannelBytes(const TensorDesc& x) {
  return AlignWorkspace(static_cast<size_t>(x.shape[1]) * sizeof(float));
}

// Returns cuDNN's kernel if it is faster than ours, which is the last candidate. The engine's
// workspace follows `run`'s first `place_bytes` of workspace.
KernelOrRefusal FasterThanOurs(const KernelRequest& request, CudnnGraph& graph, size_t place_bytes,
                               std::string_view name, std::function<void(const KernelContext&)> run,
                               OperandSet variances) {
  const EngineChoice choice{.problem = StrCat(ProblemOf(request), " by ", name),
                            .is_ahead = PlanningAhead::is_on()};
  if (std::string why = graph.Plan(choice); !why.empty()) return Refusal{why};
  const std::vector<std::string> engines = graph.engines();
  if (request.device.is_described())
    return Refusal{StrCat(engines[0], " serves only where it was timed to be faster")};
  Kernel kernel{"", std::move(run), place_bytes + graph.workspace_bytes(), engines};
  kernel.needs_own_output = true;  // cuDNN gives no guarantee for tensors that share memory
  const auto ours = [&] {
    return KernelRegistry::Get()
        .Candidates(DeviceKind::kCuda, request.op.type())
        .back()
        .factory(request);
  };
  return Checked(request, std::move(kernel), ours, variances);
}

// Includes the op's epilogue, which must satisfy IsAddRelu().
std::shared_ptr<CudnnGraph> Describe(const BatchNorm& op, const KernelRequest& request) {
  using fe::graph::Pointwise_attributes;
  const TensorDesc& x = request.inputs[0];
  const int64_t channels = x.shape[1];
  auto norm = std::make_shared<CudnnGraph>(CudaDeviceOf(request), x.dtype);
  fe::graph::Graph& graph = norm->graph();
  CudnnTensor eps = graph.tensor(static_cast<float>(op.eps));
  auto attributes = fe::graph::Batchnorm_attributes();
  attributes.set_epsilon(eps);
  auto [y, mean, inverse, unused_mean, unused_variance] =
      graph.batchnorm(norm->Input(kImages, x), norm->ChannelInput(kGammas, channels),
                      norm->ChannelInput(kBetas, channels), attributes);
  norm->ChannelOutput(kMeans, mean, channels);
  norm->ChannelOutput(kInverses, inverse, channels);
  if (ops::AddedOperand(op.epilogue) >= 0) {
    y = graph.pointwise(y, norm->Input(kAdded, x),
                        Pointwise_attributes().set_mode(fe::PointwiseMode_t::ADD));
  }
  if (ops::EndsInRelu(op.epilogue))
    y = graph.pointwise(y, Pointwise_attributes().set_mode(fe::PointwiseMode_t::RELU_FWD));
  norm->Output(kResult, y, request.outputs[0]);
  return norm;
}

KernelOrRefusal MakeBatchNorm(const BatchNorm& op, const KernelRequest& request) {
  using Norm = BatchNorm;
  if (std::string why = UnfitImages(request); !why.empty()) return Refusal{why};
  if (!AreFloats(request.inputs, {Norm::kGamma, Norm::kBeta}) ||
      !AreFloats(request.outputs, {Norm::kMean, Norm::kVariance})) {
    return Refusal{"scale, shift and statistics have to be there, in float"};
  }
  const auto norm = Describe(op, request);
  const size_t place_bytes = ChannelBytes(request.inputs[0]);
  const auto run = [=, added = ops::AddedOperand(op.epilogue)](const KernelContext& ctx) {
    auto* const inverses = static_cast<float*>(ctx.workspace);
    CudnnPointers pointers = {{kImages, ctx.input(Norm::kX).data},
                              {kGammas, ctx.input(Norm::kGamma).data},
                              {kBetas, ctx.input(Norm::kBeta).data},
                              {kMeans, ctx.output(Norm::kMean).data},
                              {kInverses, inverses},
                              {kResult, ctx.output(Norm::kY).data}};
    if (added >= 0) pointers[kAdded] = ctx.input(added).data;
    norm->Run(std::move(pointers), Behind(ctx.workspace, place_bytes), StreamOf(ctx));
    StoreVariances(op, ctx, inverses);
  };
  return FasterThanOurs(request, *norm, place_bytes, "batch norm", run, {});
}

std::shared_ptr<CudnnGraph> Describe(const KernelRequest& request) {
  const TensorDesc& x = request.inputs[0];
  const int64_t channels = x.shape[1];
  auto norm = std::make_shared<CudnnGraph>(CudaDeviceOf(request), x.dtype);
  auto attributes = fe::graph::Batchnorm_backward_attributes();
  attributes.set_saved_mean_and_inv_variance(norm->ChannelInput(kMeans, channels),
                                             norm->ChannelInput(kInverses, channels));
  const auto [dx, dgamma, dbeta] =
      norm->graph().batchnorm_backward(norm->Input(kGradients, x), norm->Input(kImages, x),
                                       norm->ChannelInput(kGammas, channels), attributes);
  norm->Output(kResult, dx, x);
  norm->ChannelOutput(kDgammas, dgamma, channels);
  norm->ChannelOutput(kDbetas, dbeta, channels);
  return norm;
}

KernelOrRefusal MakeBatchNormGrad(const BatchNormGrad& op, const KernelRequest& request) {
  using Grad = BatchNormGrad;
  if (std::string why = UnfitImages(request); !why.empty()) return Refusal{why};
  if (Has(request.inputs, Grad::kY) || Has(request.outputs, Grad::kDresidual))
    return Refusal{"cuDNN has no engine for it with a ReLU's result"};
  if (!AreFloats(request.inputs, {Grad::kMean, Grad::kVariance, Grad::kGamma}) ||
      !Has(request.outputs, Grad::kDx)) {
    return Refusal{"scale and statistics have to be there, in float, and dx has to be wanted"};
  }
  const auto norm = Describe(request);
  const size_t channel_bytes = ChannelBytes(request.inputs[0]);
  const auto run = [=, eps = op.eps](const KernelContext& ctx) {
    const auto place = [&](size_t i) {
      return static_cast<float*>(Behind(ctx.workspace, i * channel_bytes));
    };
    InverseDeviations(ctx, ctx.input(Grad::kVariance), eps, place(0));
    norm->Run({{kGradients, ctx.input(Grad::kDy).data},
               {kImages, ctx.input(Grad::kX).data},
               {kGammas, ctx.input(Grad::kGamma).data},
               {kMeans, ctx.input(Grad::kMean).data},
               {kInverses, place(0)},
               {kResult, ctx.output(Grad::kDx).data},
               {kDgammas, place(1)},
               {kDbetas, place(2)}},
              place(3), StreamOf(ctx));
    StoreParameterGradients(ctx, place(1), place(2));
  };
  return FasterThanOurs(request, *norm, 3 * channel_bytes, "batch norm dx", run, {Grad::kVariance});
}

constexpr const char *kName = "batch-norm-cudnn", *kGradName = "batch-norm-grad-cudnn";

std::vector<Signature> NormSignatures() {
  return {{DType::kFloat, DType::kFloat},
          {DType::kFloat16, DType::kFloat},
          {DType::kBFloat16, DType::kFloat}};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, BatchNorm, kName, KernelRank::kBest, MakeBatchNorm,
                              {.signatures = NormSignatures(), .fuses = ops::IsAddRelu});
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, BatchNormGrad, kGradName, KernelRank::kBest,
                              MakeBatchNormGrad, {.signatures = NormSignatures()});

const AheadFactoryRegistrar norms_ahead[] = {
    {DeviceKind::kCuda, typeid(BatchNorm), kName, Ahead(MakeBatchNorm)},
    {DeviceKind::kCuda, typeid(BatchNormGrad), kGradName, Ahead(MakeBatchNormGrad)},
};

}  // namespace
}  // namespace caffe::cuda
