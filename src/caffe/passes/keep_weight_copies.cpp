#include <set>

#include "caffe/ops/convert.hpp"
#include "caffe/ops/fold.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {

// After this pass weights that are read in another type or layout have copies that outlive a run
// (kState), outside the arena. A copy is recomputed only if the weights have changed; see
// graph/weight_copies.hpp. It follows the passes that insert and simplify conversions.
class KeepWeightCopies final : public Pass {
 public:
  std::string_view name() const override { return "keep-weight-copies"; }
  bool is_optional() const override { return true; }

  void Run(Graph& graph) override {
    const std::set<const Value*> written = WrittenParams(graph);
    std::set<const Value*> copies;
    for (Node* node : graph.ScheduledNodes()) {
      if (node->op.As<ops::FoldChannels>() != nullptr)
        copies.insert(node->outputs.begin(), node->outputs.end());
      if (node->op.As<ops::Cast>() == nullptr && node->op.As<ops::Reorder>() == nullptr) continue;
      Value& from = *node->inputs[0];
      Value& to = *node->outputs[0];
      const bool is_weight = from.kind == ValueKind::kParam && written.count(from.root()) == 0;
      if (!is_weight && copies.count(&from) == 0) continue;
      if (to.kind != ValueKind::kActivation || to.is_kept) continue;
      to.kind = ValueKind::kState;
      copies.insert(&to);
    }
  }
};

std::unique_ptr<Pass> MakeKeepWeightCopies() {
  return std::make_unique<KeepWeightCopies>();
}

}  // namespace caffe::passes
