// Convolutions and matrix products of 8-bit numbers by cuDNN's tensor core engines: 32-bit sums,
// with the epilogue in the same pass over memory if there is an engine for that, otherwise in a
// kernel of ours afterwards. A matrix product is a convolution of one-pixel images.
#include "caffe/cuda/int8_products.hpp"
#include "caffe/cuda/kernels/cudnn_convolution.hpp"

namespace caffe::cuda {
namespace {

constexpr int64_t kFactors = kFirstEntry, kOther = kFactors + 1, kOtherScale = kFactors + 2,
                  kPerUnit = kFactors + 3;

// A convolution, or a product expressed as one.
struct NumbersProblem {
  ops::ConvGeometry geometry;
  ops::ConvChoice choice = {};
  ops::Epilogue epilogue;
  TensorDesc x, y;
  std::vector<int64_t> filter;
  WeightOrder order;
  bool has_bias = false;

  ConvProblem conv() const { return {x, y, filter, DType::kInt8, geometry}; }
};

TensorDesc Pixels(const OperandDesc& matrix, int64_t rows, int64_t columns) {
  TensorDesc desc = matrix;
  desc.shape = Shape{rows, columns, 1, 1};
  desc.layout = Layout::kChannelsLast;
  return desc;
}

bool HasBias(const KernelRequest& request) {
  return request.inputs.size() > 2 && request.inputs[2].present;
}

NumbersProblem ProblemOfConv(const ops::Conv& op, const KernelRequest& request) {
  const Shape& w = request.inputs[ops::Conv::kW].shape;
  return {op.geometry,
          op.choice,
          op.epilogue,
          request.inputs[0],
          request.outputs[0],
          w.dims(),
          WeightOrder::OfConv(w),
          HasBias(request)};
}

NumbersProblem ProblemOfGemm(const ops::Gemm& op, const KernelRequest& request) {
  return {{{1, 1}, {1, 1}, {0, 0}, {1, 1}, 1},
          {},
          op.epilogue,
          Pixels(request.inputs[0], op.rows, op.inner),
          Pixels(request.outputs[0], op.rows, op.columns),
          {op.columns, op.inner, 1, 1},
          WeightOrder::OfGemm(op),
          HasBias(request)};
}

// Builds the graph of one product, step by step.
class NumbersGraph {
 public:
  NumbersGraph(const KernelRequest& request, const NumbersProblem& problem)
      : request_(request),
        problem_(problem),
        conv_(problem.conv()),
        graph_(NewGraph(request, conv_)) {
    auto attributes = conv_.Window<fe::graph::Conv_fprop_attributes>();
    attributes.set_compute_data_type(fe::DataType_t::INT32);
    y_ = graph_->graph().conv_fprop(
        graph_->Input(kX, problem.x),
        graph_->Input(kW, problem.filter, conv_.filter_strides(), DType::kInt8), attributes);
  }

  // Adds the whole epilogue of the sums.
  void Finish() {
    const int64_t channels = problem_.filter[0];
    y_->set_data_type(fe::DataType_t::INT32);
    Combine(fe::PointwiseMode_t::MUL, graph_->ChannelInput(kFactors, channels));
    if (problem_.has_bias) Combine(fe::PointwiseMode_t::ADD, graph_->ChannelInput(kBias, channels));
    const int added = ops::AddedOperand(problem_.epilogue);
    if (added >= 0) Combine(fe::PointwiseMode_t::ADD, Added(request_.inputs[added].dtype));
    for (const ops::Pointwise& entry : problem_.epilogue) Limit(entry);
    if (Is8Bit(problem_.y.dtype)) Combine(fe::PointwiseMode_t::MUL, Scalar(kPerUnit));
    graph_->Output(kY, y_, problem_.y);
  }
  // Outputs only the sums, as floats.
  void StoreSums() {
    TensorDesc sums = problem_.y;
    sums.dtype = DType::kFloat;
    graph_->Output(kY, y_, sums);
  }

  std::variant<std::shared_ptr<CudnnGraph>, std::string> Plan(std::string_view name) const {
    std::string why = graph_->Plan(ChoiceOf(request_, conv_, problem_.choice, name));
    if (!why.empty()) return why;
    return graph_;
  }

 private:
  static fe::graph::Pointwise_attributes Mode(fe::PointwiseMode_t mode) {
    return fe::graph::Pointwise_attributes().set_mode(mode).set_compute_data_type(
        fe::DataType_t::FLOAT);
  }
  void Combine(fe::PointwiseMode_t mode, const CudnnTensor& with) {
    y_ = graph_->graph().pointwise(y_, with, Mode(mode));
    y_->set_data_type(fe::DataType_t::FLOAT);
  }
  CudnnTensor Scalar(int64_t number) {
    const CudnnTensor scalar = graph_->Input(number, {1, 1, 1, 1}, {1, 1, 1, 1}, DType::kFloat);
    scalar->set_alignment(sizeof(float));  // it follows other numbers in memory
    return scalar;
  }
  // The added tensor's values.
  CudnnTensor Added(DType type) {
    TensorDesc desc = problem_.y;
    desc.dtype = type;
    const CudnnTensor numbers = graph_->Input(kOther, desc);
    if (!Is8Bit(type)) return numbers;
    const CudnnTensor values =
        graph_->graph().pointwise(numbers, Scalar(kOtherScale), Mode(fe::PointwiseMode_t::MUL));
    values->set_data_type(fe::DataType_t::FLOAT);
    return values;
  }
  void Limit(const ops::Pointwise& entry) {
    if (entry.kind == ops::Pointwise::Kind::kAdd) return;
    auto relu = Mode(fe::PointwiseMode_t::RELU_FWD);
    if (entry.kind == ops::Pointwise::Kind::kClip) relu.set_relu_upper_clip(entry.b);
    if (entry.kind == ops::Pointwise::Kind::kRelu && entry.a != 0)
      relu.set_relu_lower_clip_slope(entry.a);
    y_ = graph_->graph().pointwise(y_, relu);
    y_->set_data_type(fe::DataType_t::FLOAT);
  }

  const KernelRequest& request_;
  const NumbersProblem& problem_;
  const ConvProblem conv_;
  const std::shared_ptr<CudnnGraph> graph_;
  CudnnTensor y_;
};

// Returns why no engine can do everything; empty if one may.
std::string WhyNotFused(const KernelRequest& request, const NumbersProblem& problem) {
  for (const ops::Pointwise& entry : problem.epilogue) {
    if (entry.kind == ops::Pointwise::Kind::kClip && entry.a != 0)
      return StrCat("cuDNN's engines limit values from 0 on, not from ", entry.a);
  }
  const int added = ops::AddedOperand(problem.epilogue);
  if (added >= 0 && request.inputs[added].dtype == DType::kUInt8)
    return "cuDNN's engines read no unsigned numbers";
  return "";
}

KernelOrRefusal FusedKernel(const KernelRequest& request, const NumbersProblem& problem) {
  if (std::string why = WhyNotFused(request, problem); !why.empty()) return Refusal{why};
  NumbersGraph graph(request, problem);
  graph.Finish();
  const auto planned = graph.Plan(
      StrCat("int8 conv", problem.has_bias ? "+bias" : "", ops::EpilogueText(problem.epilogue)));
  if (const std::string* why = std::get_if<std::string>(&planned)) return Refusal{*why};
  const auto conv = std::get<std::shared_ptr<CudnnGraph>>(planned);
  const Int8Weights weights(problem.order, request, problem.epilogue);
  const int added = ops::AddedOperand(problem.epilogue);
  return Kernel{"",
                [=, has_bias = problem.has_bias](const KernelContext& ctx) {
                  int8_t* const w = weights.numbers(ctx, ctx.workspace);
                  CudnnPointers pointers = {
                      {kX, ctx.input(0).data},         {kW, w},
                      {kY, ctx.output(0).data},        {kFactors, weights.factors(w)},
                      {kPerUnit, weights.per_unit(w)}, {kOtherScale, weights.added_scale(w)}};
                  if (has_bias) pointers[kBias] = ctx.input(2).data;
                  if (added >= 0) pointers[kOther] = ctx.input(added).data;
                  conv->Run(std::move(pointers), Behind(ctx.workspace, weights.workspace_bytes()),
                            StreamOf(ctx));
                },
                weights.workspace_bytes() + conv->workspace_bytes(), conv->engines(),
                weights.packed()};
}

// cuDNN computes the sums; a separate step applies the epilogue.
KernelOrRefusal SumsKernel(const KernelRequest& request, const NumbersProblem& problem) {
  NumbersGraph graph(request, problem);
  graph.StoreSums();
  const auto planned = graph.Plan("int8 conv to sums");
  if (const std::string* why = std::get_if<std::string>(&planned)) return Refusal{*why};
  const auto conv = std::get<std::shared_ptr<CudnnGraph>>(planned);
  const Int8Weights weights(problem.order, request, problem.epilogue);
  const int64_t channels = problem.filter[0];
  const size_t sums_bytes =
      AlignWorkspace(static_cast<size_t>(problem.y.shape.count()) * sizeof(float));
  return Kernel{"",
                [=, epilogue = problem.epilogue](const KernelContext& ctx) {
                  int8_t* const w = weights.numbers(ctx, ctx.workspace);
                  void* const sums = Behind(ctx.workspace, weights.workspace_bytes());
                  conv->Run({{kX, ctx.input(0).data}, {kW, w}, {kY, sums}},
                            Behind(sums, sums_bytes), StreamOf(ctx));
                  FinishSums(ctx, epilogue, weights.factors(w), channels,
                             static_cast<const float*>(sums));
                },
                weights.workspace_bytes() + sums_bytes + conv->workspace_bytes(), conv->engines(),
                weights.packed()};
}

KernelOrRefusal MakeNumbers(const KernelRequest& request, const NumbersProblem& problem) {
  return Fused(request, [&](bool is_fused) {
    return is_fused ? FusedKernel(request, problem) : SumsKernel(request, problem);
  });
}

// Returns which property of an op's shapes excludes cuDNN's engines; empty if none does.
std::string WhyNotShapes(const ops::ConvGeometry& geometry, const Shape& x, const Shape& w) {
  if (geometry.spatial_axes() != 2) return "channels lie last only with two spatial axes";
  for (int i = 0; i < 2; ++i) {
    if (geometry.Span(i) > x[2 + i] + 2 * geometry.pad[i])
      return "the kernel spans more than the input";
  }
  if (w[1] == 1 && geometry.group > 1) return "its channels have a filter each";
  return "";
}

KernelOrRefusal MakeConv(const ops::Conv& op, const KernelRequest& request) {
  if (const auto refusal = RefuseNumbers(request)) return *refusal;
  std::string why = WhyNotShapes(op.geometry, request.inputs[0].shape, request.inputs[1].shape);
  if (!why.empty()) return Refusal{why};
  if (request.inputs[0].layout != Layout::kChannelsLast ||
      request.outputs[0].layout != Layout::kChannelsLast)
    return Refusal{"channels-last images only"};
  return MakeNumbers(request, ProblemOfConv(op, request));
}

KernelOrRefusal MakeInt8Gemm(const ops::Gemm& op, const KernelRequest& request) {
  if (const auto refusal = RefuseNumbers(request)) return *refusal;
  if (op.transpose_a) return Refusal{"only data whose rows are items"};
  return MakeNumbers(request, ProblemOfGemm(op, request));
}

std::string WhyNotChip(const Device& device) {
  const ChipProperties& chip = static_cast<const CudaDevice&>(device).chip();
  return WhyNoTensorCores(chip.compute_major, chip.compute_minor);
}

std::string WhyNotConv(const Op& op, std::span<const OperandDesc> inputs, const Device& device) {
  std::string why = WhyNotChip(device);
  if (!why.empty()) return why;
  return WhyNotShapes(op.As<ops::Conv>()->geometry, inputs[0].shape, inputs[1].shape);
}

std::string WhyNotGemm(const Op&, std::span<const OperandDesc>, const Device& device) {
  return WhyNotChip(device);
}

KernelTraits TraitsOfConv() {
  KernelTraits traits = ProductTraits(Layout::kChannelsLast);
  traits.why_not = WhyNotConv;
  return traits;
}
KernelTraits TraitsOfGemm() {
  KernelTraits traits = ProductTraits({});
  traits.why_not = WhyNotGemm;
  return traits;
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::Conv, "conv-cudnn-int8", KernelRank::kBest,
                              MakeConv, TraitsOfConv());
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::Gemm, "gemm-cudnn-int8", KernelRank::kBest,
                              MakeInt8Gemm, TraitsOfGemm());

const AheadFactoryRegistrar int8_ahead[] = {
    {DeviceKind::kCuda, typeid(ops::Conv), "conv-cudnn-int8", Ahead(MakeConv)},
    {DeviceKind::kCuda, typeid(ops::Gemm), "gemm-cudnn-int8", Ahead(MakeInt8Gemm)},
};

}  // namespace
}  // namespace caffe::cuda
