// Convolutions and products of 16-bit operands by kernels for float: for types that the processor
// has no arithmetic for, and for shapes that their own kernels refuse. A few images at a time are
// converted into the workspace and stay in the cache, so no tensor exists twice.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "caffe/cpu/half_rows.hpp"
#include "caffe/cpu/onednn.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/fused.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// Maximum size of a part's float images in bytes: about a second-level cache.
constexpr int64_t kPartBytes = 4 << 20;

bool IsHalf(const TensorDesc& desc) {
  return SizeOf(desc.dtype) == 2;
}

void Convert(const TensorView& from, const TensorView& to) {
  ParallelFor(to.count(), kPointwiseGrain, [&](int64_t begin, int64_t end) {
    if (IsHalf(from)) {
      VisitFloat(from.dtype, [&]<typename T>(TypeTag<T>) {
        if constexpr (sizeof(T) == 2)
          ConvertRow(from.as<const T>() + begin, to.as<float>() + begin, end - begin);
      });
    } else {
      VisitFloat(to.dtype, [&]<typename T>(TypeTag<T>) {
        if constexpr (sizeof(T) == 2)
          ConvertRow(from.as<const float>() + begin, to.as<T>() + begin, end - begin);
      });
    }
  });
}

// One operand as the float kernel sees it.
struct Widened {
  OperandDesc part;       // some images, in float
  bool is_split = false;  // into parts by images; otherwise whole in each part
  bool is_half = false;
  size_t offset = 0;  // of the converted operand in the workspace
  int64_t images = 0;
  size_t image_bytes = 0;  // in the operand's own type

  TensorView original;  // a part's images, in the operand's own type
  TensorView view;      // passed to the float kernel
  // The shapes are fixed, so a run only sets addresses and allocates nothing.
  void Place(const TensorView& whole, int64_t first, void* workspace) {
    original.data = whole.data;
    if (whole.data != nullptr && is_split)
      original.data = whole.as<char>() + static_cast<size_t>(first) * image_bytes;
    view.data = original.data;
    if (whole.data != nullptr && is_half) view.data = static_cast<char*>(workspace) + offset;
  }
};

struct State {
  std::vector<Widened> inputs, outputs;
  Kernel kernel;
  int64_t parts = 1, images_of_part = 0;
  // Operands that are passed to the float kernel.
  std::vector<TensorView> input_views, output_views;
};

int64_t ImagesOfPart(const KernelRequest& request, const LayoutRule& rule) {
  int64_t images = 0, bytes = 0;
  const auto look = [&](const auto& operands, const OperandSet& split) {
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!split.contains(i) || !operands[i].present) continue;
      images = operands[i].shape[0];
      bytes += operands[i].count() * static_cast<int64_t>(sizeof(float));
    }
  };
  look(request.inputs, rule.inputs);
  look(request.outputs, rule.outputs);
  if (images == 0) return 0;
  int64_t part = std::clamp<int64_t>(kPartBytes * images / std::max<int64_t>(bytes, 1), 1, images);
  while (images % part != 0) --part;
  return part;
}

std::vector<Widened> Widen(std::span<const OperandDesc> operands, const OperandSet& split,
                           int64_t images_of_part, WorkspaceLayout* layout) {
  std::vector<Widened> widened;
  for (size_t i = 0; i < operands.size(); ++i) {
    const OperandDesc& operand = operands[i];
    Widened& wide = widened.emplace_back();
    wide.part = operand;
    wide.part.may_be_packed = false;  // no step of the plan can precede an inner kernel
    wide.is_half = operand.present && IsHalf(operand);
    wide.is_split = operand.present && images_of_part > 0 && split.contains(i);
    if (wide.is_split) {
      wide.images = operand.shape[0];
      wide.image_bytes = operand.bytes() / static_cast<size_t>(wide.images);
      std::vector<int64_t> dims = operand.shape.dims();
      dims[0] = images_of_part;
      wide.part.shape = Shape(dims);
    }
    static_cast<TensorDesc&>(wide.original) = wide.part;
    if (wide.is_half) {
      wide.part.dtype = DType::kFloat;
      wide.offset = layout->Add(wide.part.bytes());
    }
    static_cast<TensorDesc&>(wide.view) = wide.part;
  }
  return widened;
}

std::vector<OperandDesc> Parts(const std::vector<Widened>& operands) {
  std::vector<OperandDesc> parts;
  for (const Widened& operand : operands) parts.push_back(operand.part);
  return parts;
}

void Run(State& state, size_t inner_offset, const KernelContext& ctx) {
  KernelContext inner = ctx;
  inner.workspace = static_cast<char*>(ctx.workspace) + inner_offset;
  for (int64_t part = 0; part < state.parts; ++part) {
    const int64_t first = part * state.images_of_part;
    for (size_t i = 0; i < state.inputs.size(); ++i) {
      Widened& operand = state.inputs[i];
      operand.Place(ctx.inputs[i], first, ctx.workspace);
      const bool is_due = operand.is_half && (operand.is_split || part == 0);
      if (is_due && operand.original.data != nullptr) Convert(operand.original, operand.view);
      state.input_views[i].data = operand.view.data;
    }
    for (size_t i = 0; i < state.outputs.size(); ++i) {
      Widened& operand = state.outputs[i];
      operand.Place(ctx.outputs[i], first, ctx.workspace);
      const bool is_due = operand.is_half && (operand.is_split || part == 0);
      if (is_due && ctx.accumulates(static_cast<int>(i)) && operand.original.data != nullptr)
        Convert(operand.original, operand.view);
      // Each part adds to results that depend on all images.
      if (part > 0 && !operand.is_split) inner.accumulated.insert(i);
      state.output_views[i].data = operand.view.data;
    }
    inner.inputs = state.input_views;
    inner.outputs = state.output_views;
    state.kernel.run(inner);
    for (size_t i = 0; i < state.outputs.size(); ++i) {
      const Widened& operand = state.outputs[i];
      const bool is_due = operand.is_half && (operand.is_split || part + 1 == state.parts);
      if (is_due && operand.original.data != nullptr) Convert(operand.view, operand.original);
    }
  }
}

// The op for fewer images.
Op OfPart(const Op& op, int64_t images) {
  const auto* region = op.As<ops::Fused>();
  if (region == nullptr) return op;
  ops::Fused part = *region;
  for (ops::Fused::InnerTensor& inner : part.inner) inner.shape = inner.shape.With(0, images);
  return part;
}

constexpr Signature kFloats = {DType::kFloat, DType::kFloat};

// The kernel for float, or a list of refusals.
std::variant<Kernel, std::string> FloatKernel(const Op& op, const std::vector<OperandDesc>& inputs,
                                              const std::vector<OperandDesc>& outputs,
                                              const KernelRequest& request) {
  std::string refusals;
  for (const KernelCandidate& candidate :
       KernelRegistry::Get().Candidates(request.device.kind(), op.type())) {
    if (candidate.rank == KernelRank::kReference || !candidate.Serves(op, kFloats)) continue;
    KernelOrRefusal answer =
        candidate.factory({op, inputs, outputs, request.device, request.settings});
    if (Kernel* kernel = std::get_if<Kernel>(&answer)) return std::move(*kernel);
    refusals += (refusals.empty() ? "" : "; ") + std::get<Refusal>(answer).reason;
  }
  return refusals;
}

template <typename T>
KernelOrRefusal MakeWidened(const T&, const KernelRequest& request) {
  const LayoutRule rule = request.op.layout_rule();
  auto state = std::make_shared<State>();
  WorkspaceLayout layout;
  state->images_of_part = ImagesOfPart(request, rule);
  state->inputs = Widen(request.inputs, rule.inputs, state->images_of_part, &layout);
  state->outputs = Widen(request.outputs, rule.outputs, state->images_of_part, &layout);
  for (const std::vector<Widened>* operands : {&state->inputs, &state->outputs}) {
    for (const Widened& operand : *operands) {
      if (operand.is_split) state->parts = operand.images / state->images_of_part;
    }
  }
  const std::vector<OperandDesc> inputs = Parts(state->inputs), outputs = Parts(state->outputs);
  auto answer = FloatKernel(OfPart(request.op, state->images_of_part), inputs, outputs, request);
  if (const std::string* refusals = std::get_if<std::string>(&answer))
    return Refusal{"no kernel for float serves: " + *refusals};
  state->kernel = std::get<Kernel>(std::move(answer));
  for (const Widened& operand : state->inputs) state->input_views.push_back(operand.view);
  for (const Widened& operand : state->outputs) state->output_views.push_back(operand.view);
  const size_t inner_offset = layout.bytes();
  return Kernel{"",
                [state, inner_offset](const KernelContext& ctx) { Run(*state, inner_offset, ctx); },
                inner_offset + state->kernel.workspace_bytes};
}

// A product with weights in parts of its columns. Weights that were widened as a whole would take
// twice the memory of all 16-bit weights.
class GemmByColumns {
 public:
  static constexpr int64_t kWeightBytes = 8 << 20;  // of a part, in float

  static int64_t ColumnsOfPart(const ops::Gemm& op) {
    return std::max<int64_t>(kWeightBytes / static_cast<int64_t>(sizeof(float)) / op.inner, 16);
  }

  GemmByColumns(const ops::Gemm& op, const KernelRequest& request)
      : op_(op), columns_(ColumnsOfPart(op)) {
    const auto& inputs = request.inputs;
    a_offset_ = layout_.Add<float>(IsHalf(inputs[ops::Gemm::kA]) ? op.rows * op.inner : 0);
    b_offset_ = layout_.Add<float>(columns_ * op.inner);
    bias_offset_ = layout_.Add<float>(op.columns);
    c_offset_ = layout_.Add<float>(op.rows * columns_);
    has_bias_ = inputs.size() > ops::Gemm::kBias && inputs[ops::Gemm::kBias].present;
  }

  // Returns why there is no kernel; empty if there is one.
  std::string Plan(const KernelRequest& request) {
    for (const int64_t columns : {columns_, op_.columns % columns_}) {
      if (columns == 0) continue;
      ops::Gemm part = op_;
      part.columns = columns;
      std::vector<OperandDesc> inputs = {Float({op_.rows, op_.inner}), Float({columns, op_.inner})};
      if (has_bias_) inputs.push_back(Float({columns}));
      auto answer = FloatKernel(part, inputs, {Float({op_.rows, columns})}, request);
      if (const std::string* refusals = std::get_if<std::string>(&answer)) return *refusals;
      kernels_.push_back(std::get<Kernel>(std::move(answer)));
      inner_bytes_ = std::max(inner_bytes_, kernels_.back().workspace_bytes);
    }
    for (const bool is_last : {false, true}) {
      Views& views = views_[is_last];
      const int64_t columns = is_last ? op_.columns % columns_ : columns_;
      views.inputs[0] = {Float({op_.rows, op_.inner})};
      views.inputs[1] = {Float({columns, op_.inner})};
      views.inputs[2] = {Float({columns})};
      views.output = {Float({op_.rows, columns})};
    }
    return "";
  }

  size_t workspace_bytes() const { return layout_.bytes() + inner_bytes_; }

  void Run(const KernelContext& ctx) {
    const float* const a = Floats(ctx.input(ops::Gemm::kA), a_offset_, ctx);
    const float* const bias =
        has_bias_ ? Floats(ctx.input(ops::Gemm::kBias), bias_offset_, ctx) : nullptr;
    const TensorView& b = ctx.input(ops::Gemm::kB);
    for (int64_t first = 0; first < op_.columns; first += columns_) {
      const bool is_last = first + columns_ > op_.columns;
      Views& views = views_[is_last];
      views.inputs[0].data = const_cast<float*>(a);
      views.inputs[1].data = WorkspaceAt<float>(ctx, b_offset_);
      views.inputs[2].data = const_cast<float*>(bias == nullptr ? nullptr : bias + first);
      views.output.data = WorkspaceAt<float>(ctx, c_offset_);
      TensorView rows{{views.inputs[1].shape, b.dtype},
                      b.as<char>() + first * op_.inner * static_cast<int64_t>(SizeOf(b.dtype))};
      Convert(rows, views.inputs[1]);
      KernelContext inner = ctx;
      inner.inputs = {views.inputs.data(), static_cast<size_t>(has_bias_ ? 3 : 2)};
      inner.outputs = {&views.output, 1};
      inner.accumulated = {};
      inner.workspace = static_cast<char*>(ctx.workspace) + layout_.bytes();
      kernels_[is_last && columns_ <= op_.columns ? kernels_.size() - 1 : 0].run(inner);
      Store(ctx, first, views.output);
    }
  }

 private:
  struct Views {
    std::array<TensorView, 3> inputs;
    TensorView output;
  };

  static OperandDesc Float(std::vector<int64_t> dims) {
    OperandDesc desc;
    desc.shape = Shape(std::move(dims));
    return desc;
  }
  static const float* Floats(const TensorView& from, size_t offset, const KernelContext& ctx) {
    if (!IsHalf(from)) return from.as<const float>();
    TensorView to{{from.shape, DType::kFloat}, WorkspaceAt<float>(ctx, offset)};
    Convert(from, to);
    return to.as<const float>();
  }
  void Store(const KernelContext& ctx, int64_t first, const TensorView& part) const {
    const TensorView& c = ctx.output(0);
    const int64_t columns = part.shape[1];
    VisitFloat(c.dtype, [&]<typename T>(TypeTag<T>) {
      for (int64_t r = 0; r < op_.rows; ++r) {
        const float* const from = part.as<const float>() + r * columns;
        T* const to = c.as<T>() + r * op_.columns + first;
        for (int64_t k = 0; k < columns; ++k) {
          const float old = ctx.accumulates(0) ? static_cast<float>(to[k]) : 0.0f;
          to[k] = T(ctx.accumulates(0) ? old + from[k] : from[k]);
        }
      }
    });
  }

  const ops::Gemm op_;
  const int64_t columns_;  // of a part
  bool has_bias_ = false;
  WorkspaceLayout layout_;
  size_t a_offset_ = 0, b_offset_ = 0, bias_offset_ = 0, c_offset_ = 0, inner_bytes_ = 0;
  std::vector<Kernel> kernels_;  // of a part, and of a smaller last one
  std::array<Views, 2> views_;   // of the same
};

KernelOrRefusal MakeGemmByColumns(const ops::Gemm& op, const KernelRequest& request) {
  const OperandDesc& b = request.inputs[ops::Gemm::kB];
  if (!IsHalf(b) || !b.is_constant) return Refusal{"only 16-bit weights that do not change"};
  if (!op.transpose_b || op.inner == 0) return Refusal{"only weights with a row for each output"};
  if (op.columns < 2 * GemmByColumns::ColumnsOfPart(op)) return Refusal{"only large weights"};
  const auto product = std::make_shared<GemmByColumns>(op, request);
  const std::string refusals = product->Plan(request);
  if (!refusals.empty()) return Refusal{"no kernel for float serves: " + refusals};
  return Kernel{"", [product](const KernelContext& ctx) { product->Run(ctx); },
                product->workspace_bytes()};
}

// For types that the processor has no arithmetic for.
KernelTraits WidenedTraits(bool (*fuses)(const ops::Epilogue&)) {
  KernelTraits traits{.signatures = {{DType::kFloat16, DType::kFloat}}, .fuses = fuses};
  if (!OneDnnComputes(DType::kBFloat16))
    traits.signatures.push_back({DType::kBFloat16, DType::kFloat});
  return traits;
}

bool IsPair(const Op& op) {
  return op.As<ops::Fused>()->Is({ops::Conv::kName, ops::Conv::kName});
}

// Returns the answer of the kernels for float.
std::string WhyNotPair(const Op& op, std::span<const OperandDesc> inputs, const Device& device) {
  std::vector<OperandDesc> wide(inputs.begin(), inputs.end());
  for (OperandDesc& operand : wide) {
    if (operand.present && IsHalf(operand)) operand.dtype = DType::kFloat;
  }
  std::string why = "no kernel for float";
  for (const KernelCandidate& candidate :
       KernelRegistry::Get().Candidates(device.kind(), op.type())) {
    if (candidate.rank == KernelRank::kReference || !candidate.Serves(op, kFloats)) continue;
    why = candidate.traits.why_not(op, wide, device);
    if (why.empty()) break;
  }
  return why;
}

KernelTraits PairTraits() {
  KernelTraits traits = WidenedTraits(nullptr);
  traits.is_for = IsPair;
  traits.why_not = WhyNotPair;
  return traits;
}

// Comes after oneDNN's bfloat16 kernel because of its name; that kernel refuses some shapes.
KernelTraits GradWeightsTraits() {
  return {.signatures = {{DType::kFloat16, DType::kFloat}, {DType::kBFloat16, DType::kFloat}}};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Conv, "conv-widened", KernelRank::kBest,
                              MakeWidened<ops::Conv>, WidenedTraits(OneDnnFuses));
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Fused, "conv-pair-widened", KernelRank::kBest,
                              MakeWidened<ops::Fused>, PairTraits());
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::ConvGradData, "conv-grad-data-widened",
                              KernelRank::kBest, MakeWidened<ops::ConvGradData>,
                              WidenedTraits(nullptr));
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::ConvGradWeights, "conv-grad-weights-widened",
                              KernelRank::kBest, MakeWidened<ops::ConvGradWeights>,
                              GradWeightsTraits());
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Gemm, "gemm-by-columns", KernelRank::kBest,
                              MakeGemmByColumns, WidenedTraits(nullptr));
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Gemm, "gemm-widened", KernelRank::kBest,
                              MakeWidened<ops::Gemm>, WidenedTraits(nullptr));
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::BatchedGemm, "batched-gemm-widened",
                              KernelRank::kBest, MakeWidened<ops::BatchedGemm>,
                              WidenedTraits(nullptr));

}  // namespace
}  // namespace caffe::cpu
