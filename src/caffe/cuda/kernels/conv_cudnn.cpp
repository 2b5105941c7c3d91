// Convolution and the gradient at its input by cuDNN, with a pointwise epilogue in the same pass
// over memory if cuDNN has an engine for that.
#include <numeric>

#include "caffe/cuda/channel_part.hpp"
#include "caffe/cuda/entries.hpp"
#include "caffe/cuda/gradient_epilogue.hpp"
#include "caffe/cuda/kernels/cudnn_convolution.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/fused.hpp"

namespace caffe::cuda {
namespace {

// Number of the tensor that an entry of a gradient's epilogue reads.
int64_t EntryTensor(const ops::Pointwise& entry) {
  return kFirstEntry + entry.operand;
}

fe::graph::Pointwise_attributes EntryAttributes(const ops::Pointwise& entry) {
  if (entry.kind == ops::Pointwise::Kind::kAdd)
    return fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::ADD);
  auto relu_grad = fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::RELU_BWD);
  if (entry.a != 0) relu_grad.set_relu_lower_clip_slope(entry.a);
  return relu_grad;
}

// Returns an engine that does everything, or the reason why there is none.
std::variant<std::shared_ptr<CudnnGraph>, std::string> PlanForward(
    const ops::Conv& op, const KernelRequest& request, const ConvProblem& problem, bool has_bias,
    const ops::Epilogue& epilogue, int64_t alignment = kTensorAlignment) {
  auto conv = NewGraph(request, problem);
  fe::graph::Graph& graph = conv->graph();
  const CudnnTensor x =
      conv->Input(kX, problem.x.shape.dims(), problem.x_strides(), problem.x.dtype);
  const CudnnTensor w =
      conv->Input(kW, problem.filter, problem.filter_strides(), problem.filter_type);
  CudnnTensor y = graph.conv_fprop(x, w, problem.Window<fe::graph::Conv_fprop_attributes>());
  if (has_bias) {
    const CudnnTensor bias = conv->Input(kBias, problem.bias_shape(), problem.bias_strides(),
                                         request.inputs[ops::Conv::kBias].dtype);
    y = graph.pointwise(y, bias,
                        fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::ADD));
  }
  for (const ops::Pointwise& entry : epilogue) {
    auto relu = fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::RELU_FWD);
    if (entry.a != 0) relu.set_relu_lower_clip_slope(entry.a);
    y = graph.pointwise(y, relu);
  }
  conv->Output(kY, y, problem.y.shape.dims(), problem.y_strides(), problem.y.dtype, alignment);
  const std::string name = StrCat("conv", has_bias ? "+bias" : "", epilogue.empty() ? "" : "+relu");
  std::string why = conv->Plan(ChoiceOf(request, problem, op.choice, name));
  if (!why.empty()) return why;
  return conv;
}

// The convolution with bias and epilogue in its engine, or followed by a kernel of ours for them.
KernelOrRefusal ConvKernel(const ops::Conv& op, const KernelRequest& request,
                           const ConvProblem& problem, bool is_fused) {
  const bool has_bias = request.inputs.size() > 2 && request.inputs[ops::Conv::kBias].present;
  const auto planned = PlanForward(op, request, problem, has_bias && is_fused,
                                   is_fused ? op.epilogue : ops::Epilogue());
  if (const std::string* why = std::get_if<std::string>(&planned)) return Refusal{*why};
  const auto conv = std::get<std::shared_ptr<CudnnGraph>>(planned);
  BiasAndRelu after;
  if (!is_fused && !op.epilogue.empty()) after.negative_slope = op.epilogue[0].a;
  after.channels = problem.filter[0] * problem.parts;
  after.inner = problem.y.layout == Layout::kPlain ? problem.y.shape.count(2) : 1;
  const FilterPlace filter(problem);
  const ConvParts parts(problem);
  const bool is_bias_after = has_bias && !is_fused;
  const bool has_after = is_bias_after || after.negative_slope != 1;
  return Kernel{
      "",
      [=](const KernelContext& ctx) {
        const TensorView& y = ctx.output(0);
        void* const w = filter.ToKrsc(ctx, ctx.input(1));
        for (int part = 0; part < parts.count; ++part) {
          CudnnPointers pointers = {{kX, Behind(ctx.input(0).data, part * parts.x)},
                                    {kW, Behind(w, part * parts.w)},
                                    {kY, Behind(y.data, part * parts.y)}};
          if (has_bias && is_fused) {
            const TensorView& bias = ctx.input(ops::Conv::kBias);
            pointers[kBias] = Behind(bias.data, part * parts.channels * SizeOf(bias.dtype));
          }
          conv->Run(std::move(pointers), Behind(ctx.workspace, filter.bytes()), StreamOf(ctx));
        }
        if (!has_after) return;
        BiasAndRelu what = after;
        if (is_bias_after)
          what.bias = {ctx.input(ops::Conv::kBias).data, ctx.input(ops::Conv::kBias).dtype};
        AddBiasAndRelu(ctx, what, y.count(), {y.data, y.dtype});
      },
      filter.bytes() + conv->workspace_bytes(), filter.NamesOf(conv->engines())};
}

KernelOrRefusal MakeConv(const ops::Conv& op, const KernelRequest& request, Groups groups) {
  const ConvProblem problem = ConvProblem::Of(request.inputs[ops::Conv::kX], request.outputs[0],
                                              request.inputs[ops::Conv::kW], op.geometry);
  if (std::string why = Unfit(problem, groups); !why.empty()) return Refusal{why};
  if (problem.filter_type != problem.x.dtype) return Refusal{"x and w are of two types"};
  const auto make = [&](bool is_fused) {
    return ConvKernel(op, request, problem.In(groups), is_fused);
  };
  const bool has_bias = request.inputs.size() > 2 && request.inputs[ops::Conv::kBias].present;
  return has_bias || !op.epilogue.empty() ? Fused(request, make) : make(false);
}

constexpr const char* kIntoName = "conv-into-cudnn";

// An engine that does everything and writes its channels of the whole tensor.
KernelOrRefusal IntoKernel(const ops::Fused& region, const KernelRequest& request,
                           const ConvProblem& problem) {
  using ops::Conv;
  const auto& op = region.Get<Conv>(0);
  const bool has_bias = request.inputs.size() > Conv::kBias && request.inputs[Conv::kBias].present;
  const size_t offset =
      static_cast<size_t>(region.Get<ops::InsertChannels>(1).offset) * SizeOf(problem.y.dtype);
  const auto planned = PlanForward(op, request, problem, has_bias, op.epilogue,
                                   std::gcd(static_cast<int64_t>(offset), kTensorAlignment));
  if (const std::string* why = std::get_if<std::string>(&planned)) return Refusal{*why};
  const auto conv = std::get<std::shared_ptr<CudnnGraph>>(planned);
  const FilterPlace filter(problem);
  const int whole = region.InputOf(1, ops::InsertChannels::kWhole);
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  KeepOtherChannels(ctx, whole);
                  CudnnPointers pointers = {{kX, ctx.input(Conv::kX).data},
                                            {kW, filter.ToKrsc(ctx, ctx.input(Conv::kW))},
                                            {kY, ctx.output(0).as<char>() + offset}};
                  if (has_bias) pointers[kBias] = ctx.input(Conv::kBias).data;
                  conv->Run(std::move(pointers), Behind(ctx.workspace, filter.bytes()),
                            StreamOf(ctx));
                },
                filter.bytes() + conv->workspace_bytes(), filter.NamesOf(conv->engines())};
}

KernelOrRefusal MakeConvInto(const ops::Fused& region, const KernelRequest& request) {
  const OperandDesc &w = request.inputs[ops::Conv::kW], &whole = request.outputs[0];
  TensorDesc part = whole;
  part.shape = part.shape.With(1, w.shape[0]);
  const ConvProblem problem = ConvProblem::Of(request.inputs[0], part, w,
                                              region.Get<ops::Conv>(0).geometry, whole.shape[1]);
  if (std::string why = Unfit(problem); !why.empty()) return Refusal{why};
  if (whole.layout != Layout::kChannelsLast) return Refusal{"only where channels lie last"};
  if (problem.filter_type != problem.x.dtype) return Refusal{"x and w are of two types"};
  KernelOrRefusal fused = IntoKernel(region, request, problem);
  Kernel* const kernel = std::get_if<Kernel>(&fused);
  if (kernel == nullptr) return fused;
  return Checked(request, std::move(*kernel), [&] { return OtherThan(kIntoName, request); });
}

// Returns an engine for dx and an epilogue, or the reason why there is none.
std::variant<std::shared_ptr<CudnnGraph>, std::string> PlanGradData(const ops::ConvGradData& op,
                                                                    const KernelRequest& request,
                                                                    const ConvProblem& problem,
                                                                    const ops::Epilogue& epilogue) {
  auto conv = NewGraph(request, problem);
  fe::graph::Graph& graph = conv->graph();
  const std::vector<int64_t> dims = problem.x.shape.dims(), strides = problem.x_strides();
  CudnnTensor dx = graph.conv_dgrad(
      conv->Input(kY, problem.y.shape.dims(), problem.y_strides(), problem.y.dtype),
      conv->Input(kW, problem.filter, problem.filter_strides(), problem.filter_type),
      problem.Window<fe::graph::Conv_dgrad_attributes>());
  std::string name = "conv dx";
  for (const ops::Pointwise& entry : epilogue) {
    dx->set_dim(dims).set_stride(strides);
    const CudnnTensor operand = conv->Input(EntryTensor(entry), dims, strides, problem.x.dtype);
    dx = graph.pointwise(dx, operand, EntryAttributes(entry));
    name += entry.kind == ops::Pointwise::Kind::kAdd ? "+add" : "+relu grad";
  }
  conv->Output(kX, dx, dims, strides, problem.x.dtype);
  std::string why = conv->Plan(ChoiceOf(request, problem, op.choice, name));
  if (!why.empty()) return why;
  return conv;
}

KernelOrRefusal GradDataKernel(const ops::ConvGradData& op, const KernelRequest& request,
                               const ConvProblem& problem, bool is_fused) {
  const ops::Epilogue fused = is_fused ? op.epilogue : ops::Epilogue();
  const ops::Epilogue after = is_fused ? ops::Epilogue() : op.epilogue;
  const auto planned = PlanGradData(op, request, problem, fused);
  if (const std::string* why = std::get_if<std::string>(&planned)) return Refusal{*why};
  const auto conv = std::get<std::shared_ptr<CudnnGraph>>(planned);
  const FilterPlace filter(problem);
  const ConvParts parts(problem);
  return Kernel{
      "",
      [=](const KernelContext& ctx) {
        void* const w = filter.ToKrsc(ctx, ctx.input(1));
        for (int part = 0; part < parts.count; ++part) {
          CudnnPointers pointers = {{kX, Behind(ctx.output(0).data, part * parts.x)},
                                    {kW, Behind(w, part * parts.w)},
                                    {kY, Behind(ctx.input(0).data, part * parts.y)}};
          for (const ops::Pointwise& entry : fused)
            pointers[EntryTensor(entry)] = Behind(ctx.input(entry.operand).data, part * parts.x);
          conv->Run(std::move(pointers), Behind(ctx.workspace, filter.bytes()), StreamOf(ctx));
        }
        if (!after.empty()) ApplyGradientEpilogue(ctx, after);
      },
      filter.bytes() + conv->workspace_bytes(), filter.NamesOf(conv->engines())};
}

KernelOrRefusal MakeConvGradData(const ops::ConvGradData& op, const KernelRequest& request,
                                 Groups groups) {
  using Gradient = ops::ConvGradData;
  const ConvProblem problem = ConvProblem::Of(request.outputs[0], request.inputs[Gradient::kDy],
                                              request.inputs[Gradient::kW], op.geometry);
  if (std::string why = Unfit(problem, groups); !why.empty()) return Refusal{why};
  if (problem.filter_type != problem.x.dtype) return Refusal{"dy and w are of two types"};
  const auto make = [&](bool is_fused) {
    return GradDataKernel(op, request, problem.In(groups), is_fused);
  };
  return op.epilogue.empty() ? make(false) : Fused(request, make);
}

template <typename T, KernelOrRefusal (*kMake)(const T&, const KernelRequest&, Groups)>
KernelOrRefusal MakeFastest(const T& op, const KernelRequest& request) {
  const auto make = [](const KernelRequest& asked, Groups groups) {
    return kMake(*asked.op.As<T>(), asked, groups);
  };
  return FastestOf(request, op.geometry.group, op.choice, make, {});
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::Conv, "conv-cudnn", KernelRank::kBest,
                              (MakeFastest<ops::Conv, MakeConv>),
                              {.signatures = ConvSignatures(), .fuses = IsReluAlone});
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::Fused, kIntoName, KernelRank::kBest,
                              MakeConvInto, {.signatures = ConvSignatures(), .is_for = IsConvInto});
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::ConvGradData, "conv-grad-data-cudnn",
                              KernelRank::kBest, (MakeFastest<ops::ConvGradData, MakeConvGradData>),
                              {.signatures = ConvSignatures(), .fuses = IsGradientEpilogue});

const AheadFactoryRegistrar convolutions_ahead[] = {
    {DeviceKind::kCuda, typeid(ops::Conv), "conv-cudnn", Ahead(MakeFastest<ops::Conv, MakeConv>)},
    {DeviceKind::kCuda, typeid(ops::Fused), kIntoName, Ahead(MakeConvInto)},
    {DeviceKind::kCuda, typeid(ops::ConvGradData), "conv-grad-data-cudnn",
     Ahead(MakeFastest<ops::ConvGradData, MakeConvGradData>)},
};

}  // namespace
}  // namespace caffe::cuda
