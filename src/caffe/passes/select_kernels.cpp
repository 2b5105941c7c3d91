#include "caffe/graph/layer_place.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {
namespace {

template <typename Operands>
std::vector<OperandDesc> Describe(const Operands& values) {
  std::vector<OperandDesc> operands;
  for (const Value* value : values) {
    OperandDesc& operand = operands.emplace_back();
    operand.present = value != nullptr;
    if (value != nullptr) static_cast<TensorDesc&>(operand) = value->desc;
  }
  return operands;
}

}  // namespace

// After this pass every node has the first kernel of its device that accepts its shapes, types and
// layouts, with the size of its workspace, and remembers why better ones refused. It follows
// everything that may still change an operand.
class SelectKernels final : public Pass {
 public:
  std::string_view name() const override { return "select-kernels"; }
  Established establishes() const override { return {.kernels = true}; }

  void Run(Graph& graph) override {
    graph.workspace_bytes = 0;
    for (Node* node : graph.ScheduledNodes()) {
      Select(graph, *node);
      graph.workspace_bytes =
          std::max(graph.workspace_bytes, static_cast<int64_t>(node->kernel.workspace_bytes));
    }
  }

 private:
  static void Select(const Graph& graph, Node& node) {
    Device& device = *graph.options.device;
    const std::vector<OperandDesc> inputs = Describe(node.inputs), outputs = Describe(node.outputs);
    node.refusals.clear();
    for (const KernelCandidate& candidate :
         KernelRegistry::Get().Candidates(device.kind(), node.op.type())) {
      if (!candidate.Serves(node.signature)) {
        node.refusals.push_back(
            StrCat(candidate.name, ": does not take ", Name(node.signature.data)));
        continue;
      }
      KernelOrRefusal answer =
          candidate.factory({node.op, inputs, outputs, device, graph.options.kernels});
      if (Kernel* kernel = std::get_if<Kernel>(&answer)) {
        node.kernel = std::move(*kernel);
        return;
      }
      node.refusals.push_back(candidate.name + ": " + std::get<Refusal>(answer).reason);
    }
    std::string tried;
    for (const std::string& refusal : node.refusals) tried += "; " + refusal;
    const Layer& layer = *graph.calls[node.layers.front()].layer;
    throw Unsupported(StrCat(PlaceOf(layer.param()), ": no kernel for ", node.op.name(), " on ",
                             Name(device.kind()), tried.empty() ? "; this build has none" : tried));
  }
};

std::unique_ptr<Pass> MakeSelectKernels() {
  return std::make_unique<SelectKernels>();
}

}  // namespace caffe::passes
