#include <algorithm>

#include "caffe/ops/conv_statistics.hpp"
#include "caffe/ops/norm.hpp"
#include "caffe/passes/fusion.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {

// After this pass the step that makes a batch's statistics also updates the running ones:
//
//   BatchNorm(x) -> y, mean, variance; UpdateRunningStatistics(mean, variance) -> running
//                                                   -> BatchNorm(x) -> y, mean, variance, running
//
// ConvStatistics likewise. That saves a step of a few numbers, which on a GPU takes as long as it
// takes to launch. It follows fuse-statistics, which decides who makes the statistics.
class FuseRunningStatistics final : public Pass {
 public:
  std::string_view name() const override { return "fuse-running-statistics"; }
  bool is_optional() const override { return true; }

  void Run(Graph& graph) override {
    Fusion fusion(graph);
    for (Node* node : fusion.nodes()) {
      if (node->op.As<Update>() == nullptr) continue;
      Node* maker = MakerOf(fusion, *node);
      if (maker == nullptr || IsTouchedBetween(fusion, *maker, *node)) continue;
      Fuse(*maker, *node);
      fusion.Erase(*node);
    }
    fusion.Finish();
  }

 private:
  using Norm = ops::BatchNorm;
  using Conv = ops::ConvStatistics;
  using Update = ops::UpdateRunningStatistics;
  static_assert(int{Norm::kMean} == int{Conv::kMean} &&
                int{Norm::kRunning} == int{Conv::kRunning} &&
                int{Norm::kVariance} == int{Conv::kVariance});

  // The node that makes both statistics in the types in which they are read, and has no running
  // ones yet; null where there is none. Without items no kernel makes them: results are zeros.
  static Node* MakerOf(const Fusion& fusion, const Node& update) {
    Node* maker = fusion.WriterOf(update.inputs[Update::kBatchMean]);
    if (maker == nullptr || maker->outputs.size() > Norm::kRunning ||
        maker->outputs[0]->desc.count() == 0 ||
        (maker->op.As<Norm>() == nullptr && maker->op.As<Conv>() == nullptr)) {
      return nullptr;
    }
    const bool is_whole = IsReadAsMade(maker->outputs[Norm::kMean], update.inputs[0]) &&
                          IsReadAsMade(maker->outputs[Norm::kVariance], update.inputs[1]);
    return is_whole ? maker : nullptr;
  }

  static bool IsReadAsMade(const Result& made, const Operand& read) {
    return made.value == read.value && made.dtype == read.dtype && read.dtype == read->desc.dtype;
  }

  // Whether a step between the two reads or writes the running statistics: of a layer that shares
  // them.
  static bool IsTouchedBetween(const Fusion& fusion, const Node& maker, const Node& update) {
    const auto is_updated = [&](Value* value) {
      return value != nullptr && std::ranges::any_of(update.outputs, [&](Value* output) {
               return output != nullptr && output->root() == value->root();
             });
    };
    const auto begin = fusion.nodes().begin();
    return std::any_of(
        begin + fusion.StepOf(maker) + 1, begin + fusion.StepOf(update), [&](const Node* node) {
          return !fusion.IsErased(node) && (std::ranges::any_of(node->inputs, is_updated) ||
                                            std::ranges::any_of(node->outputs, is_updated));
        });
  }

  static void Fuse(Node& maker, const Node& update) {
    const Update running = *update.op.As<Update>();
    if (const Norm* norm = maker.op.As<Norm>()) {
      maker.op = Norm{norm->eps, norm->epilogue, running};
    } else {
      maker.op = Conv{maker.op.As<Conv>()->conv, running};
    }
    maker.outputs.insert(maker.outputs.end(), update.outputs.begin(), update.outputs.end());
    Fusion::AddLayers(maker, update);
  }
};

std::unique_ptr<Pass> MakeFuseRunningStatistics() {
  return std::make_unique<FuseRunningStatistics>();
}

}  // namespace caffe::passes
