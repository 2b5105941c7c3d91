#include <set>

#include "caffe/passes/pass.hpp"

namespace caffe::passes {

// After this pass each writer of a parameter's gradient knows whether it adds to it. The first of
// the schedule overwrites (adds, when the run accumulates over several passes); later ones always
// add: weights shared by layers or by bottoms. It follows the passes that move such writers.
class MarkAccumulation final : public Pass {
 public:
  std::string_view name() const override { return "mark-accumulation"; }
  Established establishes() const override { return {.accumulation = true}; }

  void Run(Graph& graph) override {
    std::set<const Value*> written;
    for (Node* node : graph.ScheduledNodes()) {
      for (Result& output : node->outputs) {
        if (output == nullptr || output->kind != ValueKind::kParamGrad) continue;
        const bool is_first = written.insert(output->root()).second;
        output.accumulation = is_first ? Accumulation::kOnRequest : Accumulation::kAlways;
      }
    }
  }
};

std::unique_ptr<Pass> MakeMarkAccumulation() {
  return std::make_unique<MarkAccumulation>();
}

}  // namespace caffe::passes
