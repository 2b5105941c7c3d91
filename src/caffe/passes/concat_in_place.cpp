#include <algorithm>

#include "caffe/ops/convert.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {
namespace {

bool HasPlannedMemory(const Value* value) {
  return value->kind == ValueKind::kActivation && !value->is_kept;
}

bool IsPart(const Value* part, const Value* whole, int axis) {
  return HasPlannedMemory(part) && HasPlannedMemory(whole) &&
         part->desc.dtype == whole->desc.dtype && part->desc.layout == whole->desc.layout &&
         ops::AroundAxis(whole->desc, axis).outer == 1;
}

}  // namespace

// After this pass concatenations and slices with contiguous parts are marked, so that plan-memory
// may place the parts inside the whole. Their kernels do not copy parts that are in place already.
// Parts are contiguous if no axis before theirs has more than one element: along axis 0 (recurrent
// layers), or with a batch of 1 (detectors). Other parts are copied: for convolutions that read or
// write channels-last images with gaps between pixels, oneDNN 2.6 has only its reference, which is
// some 100 times slower. A keep-all plan shares no memory, so nothing is marked.
class ConcatInPlace final : public Pass {
 public:
  std::string_view name() const override { return "concat-in-place"; }
  bool is_optional() const override { return true; }

  void Run(Graph& graph) override {
    if (graph.options.keep_all) return;
    for (Node* node : graph.ScheduledNodes()) {
      if (const auto* concat = node->op.As<ops::Concat>()) {
        const bool has_part = std::ranges::any_of(node->inputs, [&](const Value* input) {
          return IsPart(input, node->outputs[0], concat->axis);
        });
        if (has_part) node->op = ops::Concat{.axis = concat->axis, .in_place = true};
      } else if (const auto* slice = node->op.As<ops::SliceOf>()) {
        if (IsPart(node->outputs[0], node->inputs[0], slice->axis))
          node->op = ops::SliceOf{.axis = slice->axis, .offset = slice->offset, .in_place = true};
      }
    }
  }
};

std::unique_ptr<Pass> MakeConcatInPlace() {
  return std::make_unique<ConcatInPlace>();
}

}  // namespace caffe::passes
