// The gradient at a convolution's weights by cuDNN, or as a matrix product by cuBLASLt.
#include "caffe/cuda/kernels/cudnn_convolution.hpp"
#include "caffe/ops/gemm.hpp"

namespace caffe::cuda {
namespace {

using ops::ConvGradWeights;

// Returns an engine for dw in `type`.
std::variant<std::shared_ptr<CudnnGraph>, std::string> PlanGradWeights(const ConvGradWeights& op,
                                                                       const KernelRequest& request,
                                                                       const ConvProblem& problem) {
  auto conv = NewGraph(request, problem);
  const CudnnTensor dw = conv->graph().conv_wgrad(
      conv->Input(kY, problem.y.shape.dims(), problem.y_strides(), problem.y.dtype),
      conv->Input(kX, problem.x.shape.dims(), problem.x_strides(), problem.x.dtype),
      problem.Window<fe::graph::Conv_wgrad_attributes>());
  conv->Output(kW, dw, problem.filter, problem.filter_strides(), problem.filter_type);
  std::string why = conv->Plan(ChoiceOf(request, problem, op.choice, "conv dw"));
  if (!why.empty()) return why;
  return conv;
}

// The bias's gradient, a sum over images and pixels, by our own kernels.
struct BiasGradient {
  bool is_wanted = false;
  ChannelExtents extents;

  BiasGradient(const KernelRequest& request, const TensorDesc& dy)
      : is_wanted(request.outputs.size() > 1 && request.outputs[1].present),
        extents(dy.layout == Layout::kPlain
                    ? ChannelExtents{dy.shape[0], dy.shape[1], dy.shape.count(2)}
                    : ChannelExtents{dy.shape[0] * dy.shape.count(2), dy.shape[1], 1}) {}

  size_t workspace_bytes() const { return is_wanted ? SumChannelsWorkspace(extents) : 0; }
  void Run(const KernelContext& ctx, void* workspace) const {
    if (!is_wanted || !ctx.has_output(1)) return;
    SumChannels(ctx, {ctx.input(1).data, ctx.input(1).dtype}, extents, ctx.accumulates(1),
                {ctx.output(1).data, ctx.output(1).dtype}, workspace);
  }
};

KernelOrRefusal MakeConvGradWeights(const ConvGradWeights& op, const KernelRequest& request,
                                    Groups groups) {
  if (!request.outputs[0].present) return Refusal{"only the bias's gradient is wanted"};
  const DType type = request.outputs[0].dtype;
  const ConvProblem whole =
      ConvProblem::Of(request.inputs[0], request.inputs[1], request.outputs[0], op.geometry);
  if (std::string why = Unfit(whole, groups); !why.empty()) return Refusal{why};
  const BiasGradient bias(request, whole.y);
  ConvProblem problem = whole.In(groups);
  // Sums are float, but the output has the images' type, for which cuDNN has newer engines. On an
  // H200 its only engine with float output takes 50 times as long.
  problem.filter_type = problem.x.dtype;
  auto planned = PlanGradWeights(op, request, problem);
  if (std::holds_alternative<std::string>(planned) && type != problem.filter_type) {
    problem.filter_type = type;
    planned = PlanGradWeights(op, request, problem);
  }
  if (const std::string* why = std::get_if<std::string>(&planned)) return Refusal{*why};
  const auto conv = std::get<std::shared_ptr<CudnnGraph>>(planned);
  const FilterPlace filter(problem);
  const ConvParts parts(problem);
  const size_t place_bytes = AlignWorkspace(problem.filter_bytes());
  // Written directly to the output if nothing has to be transposed, converted or added.
  const bool is_direct = problem.is_filter_order_equal() && problem.filter_type == type;
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  void* const rest = Behind(ctx.workspace, place_bytes);
                  bias.Run(ctx, rest);
                  const bool adds = ctx.accumulates(0);
                  void* const dw = is_direct && !adds ? ctx.output(0).data : ctx.workspace;
                  for (int part = 0; part < parts.count; ++part) {
                    conv->Run({{kX, Behind(ctx.input(0).data, part * parts.x)},
                               {kW, Behind(dw, part * parts.w)},
                               {kY, Behind(ctx.input(1).data, part * parts.y)}},
                              rest, StreamOf(ctx));
                  }
                  if (dw != ctx.output(0).data) filter.TurnBack(ctx, dw, ctx.output(0), adds);
                },
                place_bytes + std::max(conv->workspace_bytes(), bias.workspace_bytes()),
                filter.NamesOf(conv->engines(), type)};
}

// True for a 1x1 kernel on channels-last images: dw = dy^T x, over all pixels.
bool IsProduct(const ops::ConvGeometry& g, const TensorDesc& x, const TensorDesc& dy) {
  const auto all = [](const std::vector<int64_t>& values, int64_t value) {
    return std::ranges::all_of(values, [&](int64_t one) { return one == value; });
  };
  return g.group == 1 && all(g.kernel, 1) && all(g.stride, 1) && all(g.pad, 0) &&
         x.layout == Layout::kChannelsLast && dy.layout == Layout::kChannelsLast;
}

OperandDesc AsMatrix(OperandDesc operand, int64_t rows, int64_t columns) {
  operand.shape = Shape({rows, columns});
  operand.layout = Layout::kPlain;
  return operand;
}

TensorView AsMatrix(TensorView view, const OperandDesc& desc) {
  static_cast<TensorDesc&>(view) = desc;
  return view;
}

KernelOrRefusal MakeProduct(const ConvGradWeights& op, const KernelRequest& request) {
  const OperandDesc &x = request.inputs[ConvGradWeights::kX],
                    &dy = request.inputs[ConvGradWeights::kDy];
  if (!request.outputs[0].present || !IsProduct(op.geometry, x, dy))
    return Refusal{"no product of matrices"};
  const int64_t rows = dy.shape[1], columns = x.shape[1], pixels = x.count() / columns;
  const std::vector<OperandDesc> factors = {AsMatrix(dy, pixels, rows),
                                            AsMatrix(x, pixels, columns)};
  const OperandDesc result = AsMatrix(request.outputs[0], rows, columns);
  const Op gemm(ops::Gemm{rows, columns, pixels, true, false});
  KernelOrRefusal answer =
      OtherThan("gemm-reference", {gemm, factors, {&result, 1}, request.device, request.settings});
  Kernel* const product = std::get_if<Kernel>(&answer);
  if (product == nullptr) return answer;
  for (std::string& name : product->algorithms) name += ", a product of cuBLASLt's";
  const BiasGradient bias(request, dy);
  const size_t product_bytes = AlignWorkspace(product->workspace_bytes);
  product->workspace_bytes = product_bytes + bias.workspace_bytes();
  product->run = [=, run = product->run](const KernelContext& ctx) {
    bias.Run(ctx, Behind(ctx.workspace, product_bytes));
    const TensorView operands[] = {AsMatrix(ctx.input(ConvGradWeights::kDy), factors[0]),
                                   AsMatrix(ctx.input(ConvGradWeights::kX), factors[1])};
    const TensorView dw = AsMatrix(ctx.output(0), result);
    KernelContext inner = ctx;
    inner.inputs = operands;
    inner.outputs = {&dw, 1};
    run(inner);
  };
  return answer;
}

KernelOrRefusal MakeFastestGradWeights(const ConvGradWeights& op, const KernelRequest& request) {
  const auto make = [](const KernelRequest& asked, Groups groups) {
    return MakeConvGradWeights(*asked.op.As<ConvGradWeights>(), asked, groups);
  };
  std::vector<std::function<KernelOrRefusal()>> others;
  // Products are timed when they are created. They are not engines of cuDNN, and use tensor cores.
  const bool may_be_product = op.choice.algorithm < 0 && op.choice.math != 0;
  if (may_be_product && !PlanningAhead::is_on())
    others.push_back([&] { return MakeProduct(op, request); });
  return FastestOf(request, op.geometry.group, op.choice, make, others);
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ConvGradWeights, "conv-grad-weights-cudnn",
                              KernelRank::kBest, MakeFastestGradWeights,
                              {.signatures = ConvSignatures()});

const AheadFactoryRegistrar grad_weights_ahead[] = {
    {DeviceKind::kCuda, typeid(ConvGradWeights), "conv-grad-weights-cudnn",
     Ahead(MakeFastestGradWeights)},
};

}  // namespace
}  // namespace caffe::cuda
