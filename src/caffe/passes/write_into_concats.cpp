#include <algorithm>

#include "caffe/ops/conv_into.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/passes/fusion.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {
namespace {

// Parts begin where vendors' engines can begin to write.
constexpr int64_t kPartAlignment = 16;

}  // namespace

// After this pass convolutions whose results a concatenation joins along the channels write them
// where they belong, and nothing is copied:
//
//   Conv(x1) -> a, Conv(x2) -> b, Concat(a, b) -> y
//                                     -> ConvInto(x1) -> whole, ConvInto(x2, whole) -> y
//
// Where all inputs of the concatenation are such results, channels lie last, and the device has a
// kernel for that which is better than a reference. Programs are for other kernels. plan-memory
// gives the tensors of such a chain one place. It follows assign-layouts, which decides where
// channels lie.
class WriteIntoConcats final : public Pass {
 public:
  std::string_view name() const override { return "write-into-concats"; }
  bool is_optional() const override { return true; }

  void Run(Graph& graph) override {
    if (graph.options.keep_all || graph.options.for_any_processor) return;
    Fusion fusion(graph);
    for (Node* node : fusion.nodes()) {
      const std::vector<Part> parts = PartsOf(graph, fusion, *node);
      if (parts.empty()) continue;
      Chain(graph, parts, *node);
      fusion.Erase(*node);
    }
    fusion.Finish();
  }

 private:
  using Into = ops::ConvInto;

  struct Part {
    Node* conv = nullptr;
    int64_t offset = 0, step = 0;
  };

  // The convolutions whose results the node joins, in the order of the schedule; none where one of
  // its inputs is something else.
  static std::vector<Part> PartsOf(const Graph& graph, const Fusion& fusion, const Node& node) {
    const auto* concat = node.op.As<ops::Concat>();
    if (concat == nullptr || concat->axis != 1 || concat->in_place) return {};
    const Value& whole = *node.outputs[0];
    if (whole.kind != ValueKind::kActivation || whole.is_kept || !IsImage(whole) ||
        !IsAligned(whole, whole.desc.shape[1])) {
      return {};
    }
    std::vector<Part> parts;
    int64_t offset = 0;
    for (const Operand& input : node.inputs) {
      Node* conv = fusion.WriterOf(input);
      if (conv == nullptr || fusion.OnlyReaderOf(input) != &node || !IsAligned(*input, offset) ||
          !IsFusable(*conv, *input, node) || !IsServed(graph, *conv)) {
        return {};
      }
      parts.push_back({conv, offset, fusion.StepOf(*conv)});
      offset += input->desc.shape[1];
    }
    std::ranges::sort(parts, {}, &Part::step);
    return parts;
  }

  static bool IsImage(const Value& value) {
    return value.desc.shape.num_axes() == 4 && value.desc.layout == Layout::kChannelsLast;
  }

  static bool IsAligned(const Value& value, int64_t channels) {
    return channels * static_cast<int64_t>(SizeOf(value.desc.dtype)) % kPartAlignment == 0;
  }

  static bool IsFusable(const Node& conv, const Value& part, const Node& concat) {
    const auto* op = conv.op.As<ops::Conv>();
    const auto reads = [](const ops::Pointwise& entry) { return entry.operand >= 0; };
    return op != nullptr && std::ranges::none_of(op->epilogue, reads) && conv.outputs.size() == 1 &&
           conv.direction == concat.direction && IsImage(part) && op->geometry.group == 1 &&
           part.desc.dtype == concat.outputs[0]->desc.dtype &&
           part.desc.scale == concat.outputs[0]->desc.scale;
  }

  static bool IsServed(const Graph& graph, const Node& conv) {
    const auto& candidates =
        KernelRegistry::Get().Candidates(graph.options.device->kind(), typeid(Into));
    const ops::Epilogue& epilogue = conv.op.As<ops::Conv>()->epilogue;
    return std::ranges::any_of(candidates, [&](const KernelCandidate& candidate) {
      return candidate.rank < KernelRank::kReference && candidate.Serves(conv.signature) &&
             (epilogue.empty() || candidate.traits.fuses(epilogue));
    });
  }

  // Each writes into what the one before has left; the last one makes the concatenation's result.
  static void Chain(Graph& graph, const std::vector<Part>& parts, const Node& concat) {
    Value* whole = nullptr;
    for (const Part& part : parts) {
      Node& node = *part.conv;
      const bool is_last = &part == &parts.back();
      node.op = Into{*node.op.As<ops::Conv>(), part.offset};
      Fusion::SetInput(node, Into::kWhole, WholeOperand(node, whole));
      whole = is_last ? concat.outputs[0].value : &Copy(graph, *concat.outputs[0].value);
      node.outputs[0].value = whole;
      if (is_last) Fusion::AddLayers(node, concat);
    }
  }

  static Operand WholeOperand(const Node& node, Value* whole) {
    Operand operand = node.outputs[0];
    operand.value = whole;
    return operand;
  }

  static Value& Copy(Graph& graph, const Value& whole) {
    Value& copy =
        graph.NewValue(whole.name, whole.desc.shape, whole.desc.dtype, ValueKind::kActivation);
    copy.desc = whole.desc;
    copy.layer = whole.layer;
    return copy;
  }
};

std::unique_ptr<Pass> MakeWriteIntoConcats() {
  return std::make_unique<WriteIntoConcats>();
}

}  // namespace caffe::passes
