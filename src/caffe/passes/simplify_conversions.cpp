#include <algorithm>

#include "caffe/ops/convert.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {
namespace {

bool IsConversion(const Node& node) {
  return node.op.As<ops::Cast>() != nullptr || node.op.As<ops::Reorder>() != nullptr;
}

// True if `to` represents every value of `from`.
bool Holds(DType to, DType from) {
  return to == from || to == DType::kDouble || (to == DType::kFloat && SizeOf(from) == 2);
}

bool IsSameForm(const TensorDesc& a, const TensorDesc& b) {
  return a.dtype == b.dtype && a.layout == b.layout && a.scale == b.scale;
}

}  // namespace

// After this pass no conversion follows another one unnecessarily:
//
//   Cast, Reorder that only it reads     -> one Reorder, which changes type and layout
//   a conversion and its inverse         -> nothing, if the first one is lossless
//
// It follows the passes that insert conversions; eliminate-dead-nodes then removes unread ones.
class SimplifyConversions final : public Pass {
 public:
  std::string_view name() const override { return "simplify-conversions"; }
  bool is_optional() const override { return true; }

  void Run(Graph& graph) override {
    while (Sweep(graph)) {
    }
  }

 private:
  static bool Sweep(Graph& graph) {
    const auto writers = Writers(graph);
    const auto readers = Readers(graph);
    for (Node* node : graph.ScheduledNodes()) {
      if (!IsConversion(*node)) continue;
      const auto writer = writers.find(node->inputs[0]);
      if (writer == writers.end() || !IsConversion(*writer->second) ||
          writer->second->layers.front() != node->layers.front() || node->inputs[0]->is_kept) {
        continue;
      }
      if (Cancel(*writer->second, *node, readers)) return true;
      if (readers.at(node->inputs[0]).size() == 1 && Merge(*writer->second, *node)) return true;
    }
    return false;
  }

  // Makes the readers of the result of `second` read the input of `first`.
  static bool Cancel(const Node& first, const Node& second,
                     const std::map<const Value*, std::vector<Node*>>& readers) {
    const Operand& original = first.inputs[0];
    const Result& restored = second.outputs[0];
    const auto found = readers.find(restored);
    if (restored->kind != ValueKind::kActivation || restored->is_kept || found == readers.end() ||
        !IsSameForm(original->desc, restored->desc) ||
        !Holds(first.outputs[0]->desc.dtype, original->desc.dtype)) {
      return false;
    }
    for (Node* reader : found->second) {
      for (Operand& input : reader->inputs) {
        if (input.value == restored.value) input.value = original.value;
      }
    }
    return true;
  }

  // Makes `second` convert directly from the input of `first`.
  static bool Merge(const Node& first, Node& second) {
    const TensorDesc &from = first.inputs[0]->desc, &between = first.outputs[0]->desc,
                     &to = second.outputs[0]->desc;
    // Rounding twice differs from rounding once.
    if (!Holds(between.dtype, from.dtype) && between.dtype != to.dtype) return false;
    second.inputs[0] = first.inputs[0];
    second.inputs[0].dtype = from.dtype;
    if (from.layout == to.layout) {
      second.op = ops::Cast{};
    } else {
      second.op = ops::Reorder{};
    }
    return true;
  }
};

std::unique_ptr<Pass> MakeSimplifyConversions() {
  return std::make_unique<SimplifyConversions>();
}

}  // namespace caffe::passes
