// Convolutions and products of 16-bit operands by kernels for float: for types that the processor
// has no arithmetic for, and for shapes that their own kernels refuse. A few images at a time are
// converted into the workspace and stay in the cache, so no tensor exists twice.
#include <algorithm>

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
  const Op op = OfPart(request.op, state->images_of_part);
  std::string refusals;
  for (const KernelCandidate& candidate :
       KernelRegistry::Get().Candidates(request.device.kind(), typeid(T))) {
    if (candidate.rank == KernelRank::kReference || !candidate.Serves(op, kFloats)) continue;
    KernelOrRefusal answer =
        candidate.factory({op, inputs, outputs, request.device, request.settings});
    if (const Refusal* refusal = std::get_if<Refusal>(&answer)) {
      refusals += (refusals.empty() ? "" : "; ") + refusal->reason;
      continue;
    }
    state->kernel = std::move(std::get<Kernel>(answer));
    for (const Widened& operand : state->inputs) state->input_views.push_back(operand.view);
    for (const Widened& operand : state->outputs) state->output_views.push_back(operand.view);
    const size_t inner_offset = layout.bytes();
    return Kernel{
        "", [state, inner_offset](const KernelContext& ctx) { Run(*state, inner_offset, ctx); },
        inner_offset + state->kernel.workspace_bytes};
  }
  return Refusal{"no kernel for float serves: " + refusals};
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
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Gemm, "gemm-widened", KernelRank::kBest,
                              MakeWidened<ops::Gemm>, WidenedTraits(nullptr));
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::BatchedGemm, "batched-gemm-widened",
                              KernelRank::kBest, MakeWidened<ops::BatchedGemm>,
                              WidenedTraits(nullptr));

}  // namespace
}  // namespace caffe::cpu
