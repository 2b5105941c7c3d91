#include <algorithm>
#include <optional>

#include "caffe/ops/conv_pair.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/passes/fusion.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {
namespace {

using ops::Conv;
using ops::ConvPair;

bool ReadsNoOperand(const ops::Epilogue& epilogue) {
  return std::ranges::all_of(epilogue,
                             [](const ops::Pointwise& entry) { return entry.operand < 0; });
}

// The node's convolution, where it reads and makes one image and nothing beside it.
const Conv* PlainConv(const Node& node) {
  const auto* conv = node.op.As<Conv>();
  const bool is_plain = conv != nullptr && node.direction == Direction::kForward &&
                        node.outputs.size() == 1 && ReadsNoOperand(conv->epilogue);
  return is_plain ? conv : nullptr;
}

OperandDesc Describe(const Operand& operand) {
  OperandDesc desc;
  desc.may_be_packed = true;
  desc.present = operand.value != nullptr;
  if (desc.present) static_cast<TensorDesc&>(desc) = operand->desc;
  return desc;
}

}  // namespace

// After this pass two convolutions are one step where the device has a kernel that computes them
// together, so that the image between them need not be stored:
//
//   Conv(x) -> a, Conv(a) -> y        -> ConvPair(x) -> y
//
// Nobody else may read `a`. It follows assign-layouts, since kernels want channels last. Programs
// are for other kernels, which have no pairs, and the blobs of a keep-all plan must exist.
class PairConvolutions final : public Pass {
 public:
  std::string_view name() const override { return "pair-convolutions"; }
  bool is_optional() const override { return true; }

  void Run(Graph& graph) override {
    if (graph.options.keep_all || graph.options.for_any_processor) return;
    Fusion fusion(graph);
    for (Node* node : fusion.nodes()) Pair(graph, fusion, *node);
    fusion.Finish();
  }

 private:
  static void Pair(const Graph& graph, Fusion& fusion, Node& second) {
    const Conv* conv = PlainConv(second);
    if (conv == nullptr) return;
    const Operand& between = second.inputs[Conv::kX];
    Node* const first = fusion.WriterOf(between);
    if (first == nullptr || PlainConv(*first) == nullptr ||
        fusion.OnlyReaderOf(between) != &second || between->kind != ValueKind::kActivation ||
        first->signature != second.signature) {
      return;
    }
    const DType type = between->desc.dtype;
    if (type != first->inputs[Conv::kX]->desc.dtype && !Is8Bit(type)) return;
    const ConvPair pair{*PlainConv(*first), *conv, type, between->desc.scale};
    std::vector<Operand> inputs = Inputs(*first, second);
    if (!IsServed(graph, pair, inputs, second)) return;
    second.op = pair;
    second.inputs = std::move(inputs);
    Fusion::AddLayers(second, *first);
    fusion.Erase(*first);
  }

  static std::vector<Operand> Inputs(const Node& first, const Node& second) {
    std::vector<Operand> inputs = first.inputs;
    inputs.resize(ConvPair::kSecondW);
    inputs.insert(inputs.end(), second.inputs.begin() + Conv::kW, second.inputs.end());
    return inputs;
  }

  static bool IsServed(const Graph& graph, const ConvPair& pair, const std::vector<Operand>& inputs,
                       const Node& second) {
    const Op op(pair);
    Device& device = *graph.options.device;
    std::vector<OperandDesc> in(inputs.size());
    std::ranges::transform(inputs, in.begin(), Describe);
    const OperandDesc out = Describe(second.outputs[0]);
    const auto& candidates = KernelRegistry::Get().Candidates(device.kind(), op.type());
    return std::ranges::any_of(candidates, [&](const KernelCandidate& candidate) {
      return candidate.rank < KernelRank::kReference && candidate.Serves(second.signature) &&
             std::holds_alternative<Kernel>(
                 candidate.factory({op, in, std::span(&out, 1), device, graph.options.kernels}));
    });
  }
};

std::unique_ptr<Pass> MakePairConvolutions() {
  return std::make_unique<PairConvolutions>();
}

}  // namespace caffe::passes
