#include "caffe/graph/verifier.hpp"

#include <set>

#include "caffe/graph/printer.hpp"

namespace caffe {
namespace {

class Verifier {
 public:
  Verifier(const Graph& graph, std::string_view pass, const Established& established)
      : graph_(graph), pass_(pass), established_(established) {}

  void Run() {
    for (const Node* node : graph_.ScheduledNodes()) {
      node_ = node;
      CheckOperands();
      if (established_.types) CheckTypes();
      if (established_.layouts) CheckLayouts();
      if (established_.kernels) Check(static_cast<bool>(node->kernel.run), "it has no kernel");
      if (established_.memory) CheckMemory();
    }
  }

 private:
  void Check(bool holds, const std::string& rule) const {
    if (!holds) {
      throw InternalError(StrCat("after pass '", pass_, "': ", rule, " in\n  ", PrintNode(*node_),
                                 "\nPlease report this with the prototxt."));
    }
  }

  // A value is written once, before it is read.
  void CheckOperands() {
    Check(!node_->layers.empty(), "it belongs to no layer");
    for (const Value* input : node_->inputs) {
      if (input == nullptr || input->kind != ValueKind::kActivation) continue;
      Check(written_.count(input) > 0, "'" + input->name + "' is read before it is written");
    }
    for (const Value* output : node_->outputs) {
      if (output == nullptr) continue;
      Check(output->kind != ValueKind::kExternal,
            "'" + output->name + "' is the caller's to write");
      if (output->kind != ValueKind::kActivation) continue;
      Check(written_.insert(output).second, "'" + output->name + "' is written twice");
    }
  }

  void CheckTypes() {
    for (size_t i = 0; i < node_->inputs.size(); ++i) {
      const Value* input = node_->inputs[i];
      if (input == nullptr) continue;
      Check(i < node_->wanted.size() && input->desc.dtype == node_->wanted[i],
            "'" + input->name + "' does not arrive in the type asked for");
    }
  }

  void CheckLayouts() {
    for (const Value* input : node_->inputs) {
      if (input == nullptr || input->desc.layout == Layout::kPlain) continue;
      Check(input->desc.shape.num_axes() == 4,
            "'" + input->name + "' is channels-last without 4 axes");
    }
  }

  void CheckMemory() {
    for (const Value* output : node_->outputs) {
      if (output == nullptr || output->kind != ValueKind::kActivation || output->is_kept) continue;
      Check(output->arena_offset >= 0, "'" + output->name + "' has no memory");
    }
  }

  const Graph& graph_;
  std::string_view pass_;
  const Established established_;
  const Node* node_ = nullptr;
  std::set<const Value*> written_;
};

}  // namespace

void VerifyGraph(const Graph& graph, std::string_view after_pass, const Established& established) {
  Verifier(graph, after_pass, established).Run();
}

}  // namespace caffe
