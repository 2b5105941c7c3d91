#include <set>

#include "caffe/graph/layer_place.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {

namespace {

constexpr size_t kMostParams = 63;  // per layer: the size of an OperandSet

}  // namespace

// After this pass each writer of a parameter's gradient knows whether it adds to it. The first
// writer of the schedule overwrites the gradient, or adds if the run accumulates over several
// passes. Later writers, for weights shared by layers or by bottoms, always add. It follows the
// passes that move such writers.
class MarkAccumulation final : public Pass {
 public:
  std::string_view name() const override { return "mark-accumulation"; }
  Established establishes() const override { return {.accumulation = true}; }

  void Run(Graph& graph) override {
    std::set<const Value*> written;
    for (Node* node : graph.ScheduledNodes()) {
      for (size_t i = 0; i < node->outputs.size(); ++i) {
        Result& output = node->outputs[i];
        if (output == nullptr || output->kind != ValueKind::kParamGrad) continue;
        Require(i < kMostParams, PlaceOf(graph.calls[node->layers.front()].layer->param()),
                ": has more than ", kMostParams, " parameters");
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
