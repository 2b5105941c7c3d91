// Convolution and its gradients by cuDNN, with what follows them element by element in the same
// pass over memory where it has an engine for that.
#include "caffe/cuda/algorithm_choice.hpp"
#include "caffe/cuda/channel_statistics.hpp"
#include "caffe/cuda/cudnn_graph.hpp"
#include "caffe/cuda/engine_check.hpp"
#include "caffe/cuda/entries.hpp"
#include "caffe/cuda/gradient_epilogue.hpp"
#include "caffe/cuda/matrix_kernels.hpp"
#include "caffe/cuda/vendor_types.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/conv_statistics.hpp"
#include "caffe/ops/plan_ahead.hpp"

namespace caffe::cuda {
namespace {

// Numbers of tensors in the graphs.
enum Tensor : int64_t { kX, kW, kY, kBias, kSums, kSquares, kFirstEntry };

// A convolution's operands as all three ops see them.
struct Problem {
  TensorDesc x, y;
  std::vector<int64_t> filter;  // K, C / group, height, width
  DType filter_type = DType::kFloat;
  const ops::ConvGeometry& geometry;

  int64_t taps() const { return filter[2] * filter[3]; }
  int64_t filter_count() const { return filter[0] * filter[1] * taps(); }
  size_t filter_bytes() const { return static_cast<size_t>(filter_count()) * SizeOf(filter_type); }
  // A filter's channels lie last, as the images' do.
  std::vector<int64_t> filter_strides() const {
    return {filter[1] * taps(), 1, filter[3] * filter[1], filter[1]};
  }
  // Where the plain order is that order.
  bool is_filter_order_equal() const { return taps() == 1 || filter[1] == 1; }

  template <typename Attributes>
  Attributes Window() const {
    return Attributes()
        .set_padding(geometry.pad)
        .set_stride(geometry.stride)
        .set_dilation(geometry.dilation);
  }
};

// What an entry of a gradient's epilogue reads.
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

// Why cuDNN is not asked at all; empty where it is.
std::string Unfit(const Problem& problem) {
  if (problem.geometry.spatial_axes() != 2) return "cuDNN's engines have two spatial axes";
  if (problem.x.dtype != problem.y.dtype) return "x and y are of two types";
  if (problem.x.layout != problem.y.layout) return "x and y are of two layouts";
  const ops::ConvGeometry& g = problem.geometry;
  for (int i = 0; i < g.spatial_axes(); ++i) {
    const int64_t padded = problem.x.shape[2 + i] + 2 * g.pad[i];
    if (g.Span(i) > padded) return "the kernel spans more than the input";
  }
  return "";
}

std::shared_ptr<CudnnGraph> NewGraph(const KernelRequest& request, const Problem& problem) {
  return std::make_shared<CudnnGraph>(CudaDeviceOf(request), problem.x.dtype);
}

EngineChoice ChoiceOf(const KernelRequest& request, const Problem& problem,
                      const ops::ConvChoice& choice, std::string_view graph) {
  const bool is_strict = request.settings.strict_fp32 && problem.x.dtype == DType::kFloat;
  EngineChoice engines{.allows_tensor_cores = !is_strict && choice.math != 0,
                       .is_deterministic = request.settings.deterministic,
                       .is_timed = choice.is_measured && AreAlgorithmsTimed(request),
                       .engine = choice.algorithm,
                       .is_ahead = PlanningAhead::is_on()};
  engines.problem = StrCat(ProblemOf(request), " by ", graph, " ", caffe::Name(problem.filter_type),
                           engines.allows_tensor_cores ? "" : " plain math",
                           engines.engine < 0 ? "" : StrCat(" engine ", engines.engine));
  return engines;
}

// The workspace's parts: the filter with its channels last, then what is left.
class FilterPlace {
 public:
  explicit FilterPlace(const Problem& problem)
      : outputs_(problem.filter[0]),
        channels_(problem.filter[1]),
        taps_(problem.taps()),
        type_(problem.filter_type),
        bytes_(problem.is_filter_order_equal() ? 0 : AlignWorkspace(problem.filter_bytes())) {}

  size_t bytes() const { return bytes_; }
  static void* After(void* workspace, size_t bytes) {
    return static_cast<char*>(workspace) + bytes;
  }
  // The filter as cuDNN reads it.
  void* ToKrsc(const KernelContext& ctx, const TensorView& filter) const {
    if (bytes_ == 0) return filter.data;
    TransposeMatrices(ctx, {filter.data, filter.dtype}, outputs_, channels_, taps_, false,
                      {ctx.workspace, type_});
    return ctx.workspace;
  }
  // filter = or += what cuDNN wrote.
  void TurnBack(const KernelContext& ctx, void* from, const TensorView& filter, bool adds) const {
    TransposeMatrices(ctx, {from, type_}, outputs_, taps_, channels_, adds,
                      {filter.data, filter.dtype});
  }

 private:
  int64_t outputs_, channels_, taps_;
  DType type_;
  size_t bytes_;
};

// An engine that does everything, or the reason why there is none.
std::variant<std::shared_ptr<CudnnGraph>, std::string> PlanForward(const ops::Conv& op,
                                                                   const KernelRequest& request,
                                                                   const Problem& problem,
                                                                   bool has_bias,
                                                                   const ops::Epilogue& epilogue) {
  auto conv = NewGraph(request, problem);
  fe::graph::Graph& graph = conv->graph();
  const CudnnTensor x = conv->Input(kX, problem.x);
  const CudnnTensor w =
      conv->Input(kW, problem.filter, problem.filter_strides(), problem.filter_type);
  CudnnTensor y = graph.conv_fprop(x, w, problem.Window<fe::graph::Conv_fprop_attributes>());
  if (has_bias) {
    const int64_t k = problem.filter[0];
    const CudnnTensor bias =
        conv->Input(kBias, {1, k, 1, 1}, {k, 1, k, k}, request.inputs[ops::Conv::kBias].dtype);
    y = graph.pointwise(y, bias,
                        fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::ADD));
  }
  for (const ops::Pointwise& entry : epilogue) {
    auto relu = fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::RELU_FWD);
    if (entry.a != 0) relu.set_relu_lower_clip_slope(entry.a);
    y = graph.pointwise(y, relu);
  }
  conv->Output(kY, y, problem.y);
  const std::string name = StrCat("conv", has_bias ? "+bias" : "", epilogue.empty() ? "" : "+relu");
  std::string why = conv->Plan(ChoiceOf(request, problem, op.choice, name));
  if (!why.empty()) return why;
  return conv;
}

// The convolution with bias and epilogue in its engine, or in a kernel of ours behind it.
KernelOrRefusal ConvKernel(const ops::Conv& op, const KernelRequest& request,
                           const Problem& problem, bool is_fused) {
  const bool has_bias = request.inputs.size() > 2 && request.inputs[ops::Conv::kBias].present;
  const auto planned = PlanForward(op, request, problem, has_bias && is_fused,
                                   is_fused ? op.epilogue : ops::Epilogue());
  if (const std::string* why = std::get_if<std::string>(&planned)) return Refusal{*why};
  const auto conv = std::get<std::shared_ptr<CudnnGraph>>(planned);
  BiasAndRelu after;
  if (!is_fused && !op.epilogue.empty()) after.negative_slope = op.epilogue[0].a;
  after.channels = problem.filter[0];
  after.inner = problem.y.layout == Layout::kPlain ? problem.y.shape.count(2) : 1;
  const FilterPlace filter(problem);
  const bool is_bias_after = has_bias && !is_fused;
  const bool has_after = is_bias_after || after.negative_slope != 1;
  return Kernel{
      "",
      [=](const KernelContext& ctx) {
        const TensorView& y = ctx.output(0);
        CudnnPointers pointers = {
            {kX, ctx.input(0).data}, {kW, filter.ToKrsc(ctx, ctx.input(1))}, {kY, y.data}};
        if (has_bias && is_fused) pointers[kBias] = ctx.input(ops::Conv::kBias).data;
        conv->Run(std::move(pointers), FilterPlace::After(ctx.workspace, filter.bytes()),
                  StreamOf(ctx));
        if (!has_after) return;
        BiasAndRelu what = after;
        if (is_bias_after)
          what.bias = {ctx.input(ops::Conv::kBias).data, ctx.input(ops::Conv::kBias).dtype};
        AddBiasAndRelu(ctx, what, y.count(), {y.data, y.dtype});
      },
      filter.bytes() + conv->workspace_bytes(), conv->engines()};
}

// The fused kernel if it computes what the plain one does and is no slower, else that.
template <typename MakePlain>
KernelOrRefusal Checked(const KernelRequest& request, Kernel fused, const MakePlain& make_plain) {
  CudaDevice& device = CudaDeviceOf(request);
  if (device.is_described() || PlanningAhead::is_on()) return fused;
  const bool is_timed = AreAlgorithmsTimed(request);
  const EngineCheck check{AlgorithmCache::OfUser(),
                          AlgorithmKey(device, "cudnn", cudnnGetVersion(),
                                       StrCat(is_timed ? "check and timing of " : "check of ",
                                              fused.algorithms.at(0), " for ", ProblemOf(request))),
                          is_timed};
  return CheckedKernel(request, check, std::move(fused), make_plain);
}

// What make(true) says where there is an engine for it, else what make(false) does.
template <typename Make>
KernelOrRefusal Fused(const KernelRequest& request, const Make& make) {
  KernelOrRefusal fused = make(true);
  Kernel* const kernel = std::get_if<Kernel>(&fused);
  if (kernel == nullptr) return make(false);
  return Checked(request, std::move(*kernel), [&] { return make(false); });
}

KernelOrRefusal MakeConv(const ops::Conv& op, const KernelRequest& request) {
  const Problem problem{request.inputs[0], request.outputs[0], request.inputs[1].shape.dims(),
                        request.inputs[1].dtype, op.geometry};
  if (std::string why = Unfit(problem); !why.empty()) return Refusal{why};
  if (problem.filter_type != problem.x.dtype) return Refusal{"x and w are of two types"};
  const auto make = [&](bool is_fused) { return ConvKernel(op, request, problem, is_fused); };
  const bool has_bias = request.inputs.size() > 2 && request.inputs[ops::Conv::kBias].present;
  return has_bias || !op.epilogue.empty() ? Fused(request, make) : make(false);
}

// An engine that also sums y and its squares, or the reason why there is none.
std::variant<std::shared_ptr<CudnnGraph>, std::string> PlanStatistics(const ops::ConvStatistics& op,
                                                                      const KernelRequest& request,
                                                                      const Problem& problem) {
  auto conv = NewGraph(request, problem);
  fe::graph::Graph& graph = conv->graph();
  const CudnnTensor y = graph.conv_fprop(
      conv->Input(kX, problem.x),
      conv->Input(kW, problem.filter, problem.filter_strides(), problem.filter_type),
      problem.Window<fe::graph::Conv_fprop_attributes>());
  conv->Output(kY, y, problem.y);
  const auto [sums, squares] = graph.genstats(y, fe::graph::Genstats_attributes());
  const int64_t k = problem.filter[0];
  conv->Output(kSums, sums, {1, k, 1, 1}, {k, 1, k, k}, DType::kFloat);
  conv->Output(kSquares, squares, {1, k, 1, 1}, {k, 1, k, k}, DType::kFloat);
  std::string why = conv->Plan(ChoiceOf(request, problem, op.conv.choice, "conv+statistics"));
  if (!why.empty()) return why;
  return conv;
}

KernelOrRefusal StatisticsKernel(const ops::ConvStatistics& op, const KernelRequest& request,
                                 const Problem& problem) {
  using Conv = ops::ConvStatistics;
  const auto planned = PlanStatistics(op, request, problem);
  if (const std::string* why = std::get_if<std::string>(&planned)) return Refusal{*why};
  const auto conv = std::get<std::shared_ptr<CudnnGraph>>(planned);
  const FilterPlace filter(problem);
  const size_t sum_bytes = AlignWorkspace(static_cast<size_t>(problem.filter[0]) * sizeof(float));
  const size_t place_bytes = filter.bytes() + 2 * sum_bytes;
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  void* const sums = FilterPlace::After(ctx.workspace, filter.bytes());
                  void* const squares = FilterPlace::After(sums, sum_bytes);
                  conv->Run({{kX, ctx.input(Conv::kX).data},
                             {kW, filter.ToKrsc(ctx, ctx.input(Conv::kW))},
                             {kY, ctx.output(Conv::kY).data},
                             {kSums, sums},
                             {kSquares, squares}},
                            FilterPlace::After(ctx.workspace, place_bytes), StreamOf(ctx));
                  StatisticsOfSums(op, ctx, static_cast<const float*>(sums),
                                   static_cast<const float*>(squares));
                },
                place_bytes + conv->workspace_bytes(), conv->engines()};
}

constexpr const char* kStatisticsName = "conv-statistics-cudnn";

// The kernel that serves where this one refuses.
KernelOrRefusal PlainStatistics(const KernelRequest& request) {
  KernelOrRefusal answer = Refusal{"there is no other kernel"};
  for (const KernelCandidate& candidate :
       KernelRegistry::Get().Candidates(DeviceKind::kCuda, request.op.type())) {
    if (candidate.name == kStatisticsName) continue;
    answer = candidate.factory(request);
    if (std::holds_alternative<Kernel>(answer)) break;
  }
  return answer;
}

KernelOrRefusal MakeConvStatistics(const ops::ConvStatistics& op, const KernelRequest& request) {
  const Problem problem{request.inputs[0], request.outputs[0], request.inputs[1].shape.dims(),
                        request.inputs[1].dtype, op.conv.geometry};
  if (std::string why = Unfit(problem); !why.empty()) return Refusal{why};
  if (problem.filter_type != problem.x.dtype) return Refusal{"x and w are of two types"};
  KernelOrRefusal fused = StatisticsKernel(op, request, problem);
  Kernel* const kernel = std::get_if<Kernel>(&fused);
  if (kernel == nullptr) return fused;
  return Checked(request, std::move(*kernel), [&] { return PlainStatistics(request); });
}

// An engine for dx and an epilogue, or the reason why there is none.
std::variant<std::shared_ptr<CudnnGraph>, std::string> PlanGradData(const ops::ConvGradData& op,
                                                                    const KernelRequest& request,
                                                                    const Problem& problem,
                                                                    const ops::Epilogue& epilogue) {
  auto conv = NewGraph(request, problem);
  fe::graph::Graph& graph = conv->graph();
  CudnnTensor dx = graph.conv_dgrad(
      conv->Input(kY, problem.y),
      conv->Input(kW, problem.filter, problem.filter_strides(), problem.filter_type),
      problem.Window<fe::graph::Conv_dgrad_attributes>());
  std::string name = "conv dx";
  for (const ops::Pointwise& entry : epilogue) {
    dx->set_dim(problem.x.shape.dims()).set_stride(StridesOf(problem.x));
    const CudnnTensor operand = conv->Input(EntryTensor(entry), problem.x);
    dx = graph.pointwise(dx, operand, EntryAttributes(entry));
    name += entry.kind == ops::Pointwise::Kind::kAdd ? "+add" : "+relu grad";
  }
  conv->Output(kX, dx, problem.x);
  std::string why = conv->Plan(ChoiceOf(request, problem, op.choice, name));
  if (!why.empty()) return why;
  return conv;
}

KernelOrRefusal GradDataKernel(const ops::ConvGradData& op, const KernelRequest& request,
                               const Problem& problem, bool is_fused) {
  const ops::Epilogue fused = is_fused ? op.epilogue : ops::Epilogue();
  const ops::Epilogue after = is_fused ? ops::Epilogue() : op.epilogue;
  const auto planned = PlanGradData(op, request, problem, fused);
  if (const std::string* why = std::get_if<std::string>(&planned)) return Refusal{*why};
  const auto conv = std::get<std::shared_ptr<CudnnGraph>>(planned);
  const FilterPlace filter(problem);
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  CudnnPointers pointers = {{kX, ctx.output(0).data},
                                            {kW, filter.ToKrsc(ctx, ctx.input(1))},
                                            {kY, ctx.input(0).data}};
                  for (const ops::Pointwise& entry : fused)
                    pointers[EntryTensor(entry)] = ctx.input(entry.operand).data;
                  conv->Run(std::move(pointers), FilterPlace::After(ctx.workspace, filter.bytes()),
                            StreamOf(ctx));
                  if (!after.empty()) ApplyGradientEpilogue(ctx, after);
                },
                filter.bytes() + conv->workspace_bytes(), conv->engines()};
}

KernelOrRefusal MakeConvGradData(const ops::ConvGradData& op, const KernelRequest& request) {
  const Problem problem{request.outputs[0], request.inputs[0], request.inputs[1].shape.dims(),
                        request.inputs[1].dtype, op.geometry};
  if (std::string why = Unfit(problem); !why.empty()) return Refusal{why};
  if (problem.filter_type != problem.x.dtype) return Refusal{"dy and w are of two types"};
  const auto make = [&](bool is_fused) { return GradDataKernel(op, request, problem, is_fused); };
  return op.epilogue.empty() ? make(false) : Fused(request, make);
}

// An engine for dw in `type`.
std::variant<std::shared_ptr<CudnnGraph>, std::string> PlanGradWeights(
    const ops::ConvGradWeights& op, const KernelRequest& request, const Problem& problem) {
  auto conv = NewGraph(request, problem);
  const CudnnTensor dw =
      conv->graph().conv_wgrad(conv->Input(kY, problem.y), conv->Input(kX, problem.x),
                               problem.Window<fe::graph::Conv_wgrad_attributes>());
  conv->Output(kW, dw, problem.filter, problem.filter_strides(), problem.filter_type);
  std::string why = conv->Plan(ChoiceOf(request, problem, op.choice, "conv dw"));
  if (!why.empty()) return why;
  return conv;
}

// The bias's gradient, a sum over images and pixels, by kernels of our own.
struct BiasGradient {
  bool is_wanted = false;
  int64_t rows = 0, columns = 0;

  BiasGradient(const KernelRequest& request, const TensorDesc& dy)
      : is_wanted(request.outputs.size() > 1 && request.outputs[1].present),
        rows(dy.shape[0] * dy.shape.count(2)),
        columns(dy.shape[1]) {}

  size_t workspace_bytes() const { return is_wanted ? SumRowsWorkspace(rows, columns) : 0; }
  void Run(const KernelContext& ctx, void* workspace) const {
    if (!is_wanted || !ctx.has_output(1)) return;
    SumRows(ctx, {ctx.input(1).data, ctx.input(1).dtype}, rows, columns, ctx.accumulates(1),
            {ctx.output(1).data, ctx.output(1).dtype}, workspace);
  }
};

KernelOrRefusal MakeConvGradWeights(const ops::ConvGradWeights& op, const KernelRequest& request) {
  if (!request.outputs[0].present) return Refusal{"only the bias's gradient is wanted"};
  const DType type = request.outputs[0].dtype;
  Problem problem{request.inputs[0], request.inputs[1], request.outputs[0].shape.dims(), type,
                  op.geometry};
  if (std::string why = Unfit(problem); !why.empty()) return Refusal{why};
  const BiasGradient bias(request, problem.y);
  if (bias.is_wanted && problem.y.layout == Layout::kPlain)
    return Refusal{"the bias's gradient is summed over pixels whose channels lie last"};
  auto planned = PlanGradWeights(op, request, problem);
  if (std::holds_alternative<std::string>(planned) && type != problem.x.dtype) {
    problem.filter_type = problem.x.dtype;  // sums are float, the result has fewer bits
    planned = PlanGradWeights(op, request, problem);
  }
  if (const std::string* why = std::get_if<std::string>(&planned)) return Refusal{*why};
  const auto conv = std::get<std::shared_ptr<CudnnGraph>>(planned);
  const FilterPlace filter(problem);
  const size_t place_bytes = AlignWorkspace(problem.filter_bytes());
  // Written where it belongs when nothing is to be turned, converted or added.
  const bool is_direct = problem.is_filter_order_equal() && problem.filter_type == type;
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  void* const rest = FilterPlace::After(ctx.workspace, place_bytes);
                  bias.Run(ctx, rest);
                  const bool adds = ctx.accumulates(0);
                  void* const dw = is_direct && !adds ? ctx.output(0).data : ctx.workspace;
                  conv->Run({{kX, ctx.input(0).data}, {kW, dw}, {kY, ctx.input(1).data}}, rest,
                            StreamOf(ctx));
                  if (dw != ctx.output(0).data) filter.TurnBack(ctx, dw, ctx.output(0), adds);
                },
                place_bytes + std::max(conv->workspace_bytes(), bias.workspace_bytes()),
                conv->engines()};
}

// cuDNN sums 16-bit products in float.
std::vector<Signature> Signatures() {
  return {{DType::kFloat, DType::kFloat},
          {DType::kFloat16, DType::kFloat},
          {DType::kBFloat16, DType::kFloat}};
}

template <typename T>
KernelFactory Ahead(KernelOrRefusal (*make)(const T&, const KernelRequest&)) {
  return [make](const KernelRequest& request) {
    const PlanningAhead ahead;
    return make(*request.op.As<T>(), request);
  };
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::Conv, "conv-cudnn", KernelRank::kBest,
                              MakeConv, {.signatures = Signatures(), .fuses = IsReluAlone});
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::ConvStatistics, kStatisticsName,
                              KernelRank::kBest, MakeConvStatistics,
                              {.signatures = {{DType::kFloat16, DType::kFloat}}});
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::ConvGradData, "conv-grad-data-cudnn",
                              KernelRank::kBest, MakeConvGradData,
                              {.signatures = Signatures(), .fuses = IsGradientEpilogue});
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::ConvGradWeights, "conv-grad-weights-cudnn",
                              KernelRank::kBest, MakeConvGradWeights, {.signatures = Signatures()});

const AheadFactoryRegistrar ahead_registrars[] = {
    {DeviceKind::kCuda, typeid(ops::Conv), "conv-cudnn", Ahead(MakeConv)},
    {DeviceKind::kCuda, typeid(ops::ConvStatistics), kStatisticsName, Ahead(MakeConvStatistics)},
    {DeviceKind::kCuda, typeid(ops::ConvGradData), "conv-grad-data-cudnn", Ahead(MakeConvGradData)},
    {DeviceKind::kCuda, typeid(ops::ConvGradWeights), "conv-grad-weights-cudnn",
     Ahead(MakeConvGradWeights)},
};

}  // namespace
}  // namespace caffe::cuda
