// Shared by cuDNN's convolutions: their operands, the order of their filters, and the check of an
// engine that fuses several steps before it is used.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "caffe/cuda/algorithm_choice.hpp"
#include "caffe/cuda/cudnn_graph.hpp"
#include "caffe/cuda/engine_check.hpp"
#include "caffe/cuda/matrix_kernels.hpp"
#include "caffe/cuda/padded_channels.hpp"
#include "caffe/cuda/space_to_depth.hpp"
#include "caffe/cuda/vendor_types.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/plan_ahead.hpp"

namespace caffe::cuda {

// Numbers of the tensors in the graphs.
enum ConvTensor : int64_t { kX, kW, kY, kBias, kFirstEntry };

// One plan computes all groups at once, or is run for each group in turn.
enum class Groups { kAtOnce, kOneByOne };

// A convolution's operands as seen by all three ops. cuDNN has no engines for a single spatial axis,
// so one of extent 1 is put before it.
struct ConvProblem {
  TensorDesc x, y;
  std::vector<int64_t> filter;  // K, C / group, spatial extents
  DType filter_type = DType::kFloat;
  ops::ConvGeometry geometry;
  // Channels of the tensor that contains y; 0: y is a whole tensor.
  int64_t y_pitch = 0;
  Layout filter_layout = Layout::kPlain;
  int64_t x_pitch = 0;  // the same for x
  // Number of groups that one plan computes one after the other; x, y and the filter are then those
  // of the first group.
  int parts = 1;

  static ConvProblem Of(const TensorDesc& x, const TensorDesc& y, const TensorDesc& filter,
                        const ops::ConvGeometry& geometry, int64_t y_pitch = 0) {
    ConvProblem problem{x, y, filter.shape.dims(), filter.dtype, geometry, y_pitch, filter.layout};
    if (geometry.spatial_axes() == 1) problem.AddAxis();
    return problem;
  }

  std::vector<int64_t> x_strides() const {
    return StridesOf(x_pitch > 0 ? WithChannels(x, x_pitch) : x);
  }
  std::vector<int64_t> y_strides() const {
    return StridesOf(y_pitch > 0 ? WithChannels(y, y_pitch) : y);
  }
  int64_t taps() const {
    return std::accumulate(filter.begin() + 2, filter.end(), int64_t{1}, std::multiplies<>());
  }
  // Counts all parts.
  int64_t filter_count() const { return parts * filter[0] * filter[1] * taps(); }
  size_t filter_bytes() const { return static_cast<size_t>(filter_count()) * SizeOf(filter_type); }
  // Strides of a channels-last filter (KRSC), also where the images are plain.
  std::vector<int64_t> filter_strides() const {
    std::vector<int64_t> strides(filter.size(), 1);
    int64_t count = filter[1];
    for (size_t axis = filter.size(); axis-- > 2; count *= filter[axis]) strides[axis] = count;
    strides[0] = count;
    return strides;
  }
  // Shape and strides of a bias.
  std::vector<int64_t> bias_shape() const {
    std::vector<int64_t> shape(filter.size(), 1);
    shape[1] = filter[0];
    return shape;
  }
  std::vector<int64_t> bias_strides() const {
    std::vector<int64_t> strides(filter.size(), filter[0]);
    strides[1] = 1;
    return strides;
  }
  // True if the filter is already in that order.
  bool is_filter_order_equal() const {
    return filter_layout == Layout::kChannelsLast || taps() == 1 || filter[1] == 1;
  }

  template <typename Attributes>
  Attributes Window() const {
    return Attributes()
        .set_padding(geometry.pad)
        .set_stride(geometry.stride)
        .set_dilation(geometry.dilation);
  }

  static TensorDesc WithChannels(TensorDesc image, int64_t channels) {
    std::vector<int64_t> dims = image.shape.dims();
    dims[1] = channels;
    image.shape = Shape(dims);
    return image;
  }
  ConvProblem In(Groups groups) const { return groups == Groups::kAtOnce ? *this : OfOneGroup(); }
  ConvProblem OfOneGroup() const {
    ConvProblem one = *this;
    one.parts = geometry.group;
    one.x_pitch = x.shape[1];
    one.y_pitch = y.shape[1];
    one.x = WithChannels(x, x.shape[1] / one.parts);
    one.y = WithChannels(y, y.shape[1] / one.parts);
    one.filter[0] /= one.parts;
    return one;
  }

 private:
  void AddAxis() {
    const auto with_axis = [](std::vector<int64_t> values, size_t at, int64_t value) {
      values.insert(values.begin() + static_cast<std::ptrdiff_t>(at), value);
      return values;
    };
    x.shape = Shape(with_axis(x.shape.dims(), 2, 1));
    y.shape = Shape(with_axis(y.shape.dims(), 2, 1));
    filter = with_axis(filter, 2, 1);
    geometry.kernel = with_axis(geometry.kernel, 0, 1);
    geometry.stride = with_axis(geometry.stride, 0, 1);
    geometry.pad = with_axis(geometry.pad, 0, 0);
    geometry.dilation = with_axis(geometry.dilation, 0, 1);
  }
};

inline void* Behind(const void* memory, size_t bytes) {
  return static_cast<char*>(const_cast<void*>(memory)) + bytes;
}

// Distances in bytes between the parts of a problem's operands.
struct ConvParts {
  int count;
  size_t x, w, y, channels;

  explicit ConvParts(const ConvProblem& problem)
      : count(problem.parts),
        x(static_cast<size_t>(problem.x.shape[1]) * SizeOf(problem.x.dtype)),
        w(problem.filter_bytes() / static_cast<size_t>(count)),
        y(static_cast<size_t>(problem.y.shape[1]) * SizeOf(problem.y.dtype)),
        channels(static_cast<size_t>(problem.filter[0])) {}  // elements of a bias, not bytes
};

// Returns why groups cannot be computed one after the other; empty if they can. cuDNN's engines for
// several groups are older than those for one: for the weights of AlexNet on an H200 it proposes
// Hopper engines only for a single group (CudnnProblemTest.GroupsAloneHaveNewerEngines). More
// groups would take too many launches; our own kernels compute depthwise convolutions
// (OwnDepthwise).
inline std::string UnfitForParts(const ConvProblem& problem) {
  constexpr int kMostParts = 4;
  const int groups = problem.geometry.group;
  if (groups < 2 || groups > kMostParts) return StrCat(groups, " groups");
  if (problem.x.layout != Layout::kChannelsLast) return "only where channels lie last";
  const ConvParts parts(problem.OfOneGroup());
  if (parts.x % kTensorAlignment != 0 || parts.y % kTensorAlignment != 0)
    return "groups of few channels";
  return "";
}

// Returns why cuDNN cannot be used at all; empty if it can.
inline std::string Unfit(const ConvProblem& problem, Groups groups = Groups::kAtOnce) {
  const int axes = problem.geometry.spatial_axes();
  if (axes != 2 && axes != 3) return "cuDNN's engines have one to three spatial axes";
  if (problem.x.dtype != problem.y.dtype) return "x and y are of two types";
  if (problem.x.layout != problem.y.layout) return "x and y are of two layouts";
  const ops::ConvGeometry& g = problem.geometry;
  constexpr size_t kRightDepthwise = 92400;
  if (g.group > 1 && g.group == problem.x.shape[1] && cudnnGetVersion() < kRightDepthwise)
    return "before version 9.24, cuDNN computes depthwise convolutions of several sizes wrongly";
  for (int i = 0; i < g.spatial_axes(); ++i) {
    const int64_t padded = problem.x.shape[2 + i] + 2 * g.pad[i];
    if (g.Span(i) > padded) return "the kernel spans more than the input";
  }
  return groups == Groups::kAtOnce ? "" : UnfitForParts(problem);
}

inline std::shared_ptr<CudnnGraph> NewGraph(const KernelRequest& request,
                                            const ConvProblem& problem) {
  return std::make_shared<CudnnGraph>(CudaDeviceOf(request), problem.x.dtype);
}

inline EngineChoice ChoiceOf(const KernelRequest& request, const ConvProblem& problem,
                             const ops::ConvChoice& choice, std::string_view graph) {
  const bool is_strict = request.settings.strict_fp32 && problem.x.dtype == DType::kFloat;
  EngineChoice engines{.allows_tensor_cores = !is_strict && choice.math != 0,
                       .is_deterministic = request.settings.deterministic,
                       .is_timed = choice.is_measured && AreAlgorithmsTimed(request),
                       .engine = choice.algorithm,
                       .is_ahead = PlanningAhead::is_on()};
  engines.problem = StrCat(ProblemOf(request), " by ", graph, " ", caffe::Name(problem.filter_type),
                           problem.parts == 1 ? "" : " of one group",
                           engines.allows_tensor_cores ? "" : " plain math",
                           engines.engine < 0 ? "" : StrCat(" engine ", engines.engine));
  return engines;
}

// Layout of the workspace: the channels-last filter, then the rest.
class FilterPlace {
 public:
  explicit FilterPlace(const ConvProblem& problem)
      : parts_(problem.parts),
        outputs_(problem.filter[0] * problem.parts),
        channels_(problem.filter[1]),
        taps_(problem.taps()),
        type_(problem.filter_type),
        bytes_(problem.is_filter_order_equal() ? 0 : AlignWorkspace(problem.filter_bytes())) {}

  size_t bytes() const { return bytes_; }
  // The engines' names, with a note on the conversion of a filter whose external type is `type`.
  std::vector<std::string> NamesOf(std::vector<std::string> engines, DType type) const {
    for (std::string& name : engines) {
      if (parts_ > 1) name += StrCat(", ", parts_, " groups one by one");
      if (type != type_) name += StrCat(", dw in ", 8 * SizeOf(type_), " bits");
      if (bytes_ > 0) name += " (filter reordered)";
    }
    return engines;
  }
  std::vector<std::string> NamesOf(std::vector<std::string> engines) const {
    return NamesOf(std::move(engines), type_);
  }
  // Returns the filter in the order that cuDNN reads (KRSC).
  void* ToKrsc(const KernelContext& ctx, const TensorView& filter) const {
    if (bytes_ == 0) return filter.data;
    TransposeMatrices(ctx, {filter.data, filter.dtype}, outputs_, channels_, taps_, false,
                      {ctx.workspace, type_});
    return ctx.workspace;
  }
  // filter = or += the result of cuDNN.
  void TurnBack(const KernelContext& ctx, void* from, const TensorView& filter, bool adds) const {
    TransposeMatrices(ctx, {from, type_}, outputs_, taps_, channels_, adds,
                      {filter.data, filter.dtype});
  }

 private:
  int parts_;
  int64_t outputs_, channels_, taps_;
  DType type_;
  size_t bytes_;
};

// Returns the fused kernel if it computes the same as the plain one and is not slower, otherwise
// the plain one. `variances`: inputs that are variances. `plain_name`: name of a plain kernel that
// the request does not determine.
template <typename MakePlain>
KernelOrRefusal Checked(const KernelRequest& request, Kernel fused, const MakePlain& make_plain,
                        OperandSet variances = {}, const std::string& plain_name = "") {
  CudaDevice& device = CudaDeviceOf(request);
  if (device.is_described()) return fused;
  const bool is_timed = AreAlgorithmsTimed(request);
  const EngineCheck check{AlgorithmCache::OfUser(),
                          AlgorithmKey(device, "cudnn", cudnnGetVersion(),
                                       StrCat(is_timed ? "check and timing of " : "check of ",
                                              fused.algorithms.at(0), " for ", ProblemOf(request),
                                              plain_name.empty() ? "" : " beside ", plain_name)),
                          is_timed, variances};
  if (PlanningAhead::is_on()) return AheadOfCheck(check, std::move(fused), make_plain);
  return CheckedKernel(request, check, std::move(fused), make_plain);
}

// Returns a kernel from another candidate than the one with this name.
inline KernelOrRefusal OtherThan(std::string_view name, const KernelRequest& request) {
  KernelOrRefusal answer = Refusal{"there is no other kernel"};
  for (const KernelCandidate& candidate :
       KernelRegistry::Get().Candidates(DeviceKind::kCuda, request.op.type())) {
    if (candidate.name == name || !candidate.IsFor(request.op)) continue;
    answer = candidate.factory(request);
    if (std::holds_alternative<Kernel>(answer)) break;
  }
  return answer;
}

// Returns the kernel of make(true) if there is an engine for it, otherwise that of make(false).
template <typename Make>
KernelOrRefusal Fused(const KernelRequest& request, const Make& make) {
  KernelOrRefusal fused = make(true);
  Kernel* const kernel = std::get_if<Kernel>(&fused);
  if (kernel == nullptr) return make(false);
  return Checked(request, std::move(*kernel), [&] { return make(false); });
}

// Returns our own kernel if the convolution is depthwise and fits (conv_depthwise.cu).
inline KernelOrRefusal OwnDepthwise(const KernelRequest& request) {
  const std::string name = KebabCase(request.op.name()) + "-depthwise";
  for (const KernelCandidate& candidate :
       KernelRegistry::Get().Candidates(DeviceKind::kCuda, request.op.type())) {
    if (candidate.name != name) continue;
    KernelOrRefusal answer = candidate.factory(request);
    if (Kernel* const kernel = std::get_if<Kernel>(&answer)) kernel->algorithms = {name};
    return answer;
  }
  return Refusal{StrCat("there is no ", name)};
}

// Returns the fastest kernel as timed: make(request, groups) on the unchanged convolution, with
// zero-padded channels, on blocks of pixels, or group by group, or our own, or one of `others`.
template <typename Make>
KernelOrRefusal FastestOf(const KernelRequest& request, int64_t group,
                          const ops::ConvChoice& choice, const Make& make,
                          const std::vector<std::function<KernelOrRefusal()>>& others) {
  const auto at_once = [&](const KernelRequest& asked) { return make(asked, Groups::kAtOnce); };
  KernelOrRefusal best = at_once(request);
  const bool is_timed = choice.is_measured && AreAlgorithmsTimed(request);
  if (!is_timed || std::holds_alternative<Refusal>(best)) return best;
  const auto consider = [&](KernelOrRefusal answer) {
    Kernel* const other = std::get_if<Kernel>(&answer);
    if (other == nullptr || other->workspace_bytes > kWorkspaceLimit) return;
    if (PlanningAhead::is_on()) {  // the best one is chosen later
      best = Holding(std::get<Kernel>(std::move(best)), *other);
    } else {
      const std::string beside = std::get<Kernel>(best).algorithms.at(0);
      best = Checked(
          request, std::move(*other), [&] { return std::move(best); }, {}, beside);
    }
  };
  for (const int64_t channels : PaddedChannelCounts(request))
    consider(OnPaddedChannels(request, channels, at_once));
  consider(OnSpaceToDepth(request, at_once));
  if (group > 1) consider(make(request, Groups::kOneByOne));
  if (choice.algorithm < 0) consider(OwnDepthwise(request));
  for (const std::function<KernelOrRefusal()>& other : others) consider(other());
  return best;
}

// cuDNN sums 16-bit products in float.
inline std::vector<Signature> ConvSignatures() {
  return {{DType::kFloat, DType::kFloat},
          {DType::kFloat16, DType::kFloat},
          {DType::kBFloat16, DType::kFloat}};
}

// A factory that builds plans but does not time them.
template <typename T>
KernelFactory Ahead(KernelOrRefusal (*make)(const T&, const KernelRequest&)) {
  return [make](const KernelRequest& request) {
    const PlanningAhead ahead;
    return make(*request.op.As<T>(), request);
  };
}

}  // namespace caffe::cuda
