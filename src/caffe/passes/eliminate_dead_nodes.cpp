#include <algorithm>
#include <set>

#include "caffe/ops/convert.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {

// After this pass each node calls the host or has a result that a later node, the caller or a later
// run reads. It follows the passes that leave unread nodes.
class EliminateDeadNodes final : public Pass {
 public:
  std::string_view name() const override { return "eliminate-dead-nodes"; }
  Established establishes() const override { return {.liveness = true}; }

  void Run(Graph& graph) override {
    std::vector<Node*> nodes = graph.ScheduledNodes(), dead;
    std::set<const Value*> read;
    std::reverse(nodes.begin(), nodes.end());
    for (Node* node : nodes) {
      if (IsLive(*node, read)) {
        read.insert(node->inputs.begin(), node->inputs.end());
      } else {
        dead.push_back(node);
      }
    }
    graph.Erase(dead);
  }

 private:
  static bool IsLive(const Node& node, const std::set<const Value*>& read) {
    if (node.outputs.empty() || node.op.As<ops::HostCall>() != nullptr) return true;
    return std::ranges::any_of(node.outputs, [&](const Result& output) {
      return output != nullptr &&
             (output->kind != ValueKind::kActivation || output->is_kept || read.contains(output));
    });
  }
};

std::unique_ptr<Pass> MakeEliminateDeadNodes() {
  return std::make_unique<EliminateDeadNodes>();
}

}  // namespace caffe::passes
