#include <algorithm>
#include <atomic>
#include <limits>
#include <set>
#include <thread>

#include "caffe/core/start_thread.hpp"
#include "caffe/graph/layer_place.hpp"
#include "caffe/graph/weight_copies.hpp"
#include "caffe/ops/pack.hpp"
#include "caffe/ops/plan_ahead.hpp"
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
// layouts, with the size of its workspace, and remembers why better ones refused. In testing,
// kernels that want weights in an order of their own get a copy that outlives the run; in training,
// where each update would make the copy anew, they convert weights themselves. It follows
// everything that may still change an operand.
class SelectKernels final : public Pass {
 public:
  std::string_view name() const override { return "select-kernels"; }
  Established establishes() const override { return {.kernels = true}; }

  void Run(Graph& graph) override {
    FindLastingWeights(graph);
    const std::vector<KernelOrRefusal> ahead = PlanAhead(graph);
    for (Node* node : graph.ScheduledNodes()) {
      Select(graph, *node);
      if (node->kernel.packed_weights) Pack(graph, *node);
    }
    graph.workspace_bytes = 0;
    for (const Node* node : graph.ScheduledNodes()) {
      graph.workspace_bytes =
          std::max(graph.workspace_bytes, static_cast<int64_t>(node->kernel.workspace_bytes));
    }
  }

 private:
  // Parameters that no run writes, and copies of them.
  void FindLastingWeights(const Graph& graph) {
    lasting_.clear();
    if (graph.options.is_training_phase || graph.options.is_disabled("keep-weight-copies")) return;
    const std::set<const Value*> written = WrittenParams(graph);
    for (const Node* node : graph.ScheduledNodes()) {
      for (Value* input : node->inputs) {
        if (input != nullptr && input->kind == ValueKind::kParam &&
            written.count(input->root()) == 0) {
          lasting_.insert(input);
        }
      }
    }
    for (const WeightCopy& copy : WeightCopies(graph))
      lasting_.insert(copy.results.begin(), copy.results.end());
  }

  // Answers of slow factories, each asked by one of several threads. What they had to compile is
  // there as long as the answers are.
  std::vector<KernelOrRefusal> PlanAhead(const Graph& graph) const {
    std::vector<std::pair<const Node*, const KernelFactory*>> slow;
    for (const Node* node : graph.ScheduledNodes()) {
      if (const KernelFactory* factory = AheadFactory(graph, *node))
        slow.emplace_back(node, factory);
    }
    std::vector<KernelOrRefusal> answers(slow.size());
    std::atomic<size_t> next = 0;
    const auto work = [&] {
      for (size_t i = next++; i < slow.size(); i = next++)
        answers[i] = AnswerAhead(graph, *slow[i].first, *slow[i].second);
    };
    const size_t wanted =
        std::min<size_t>(slow.size(), std::max(1u, std::thread::hardware_concurrency()));
    std::vector<std::thread> threads;
    try {
      while (threads.size() < wanted) threads.push_back(StartThread("planning", work));
    } catch (const DeviceError&) {  // fewer threads do
    }
    for (std::thread& thread : threads) thread.join();
    return answers;
  }

  // Errors come again when the answer counts.
  KernelOrRefusal AnswerAhead(const Graph& graph, const Node& node,
                              const KernelFactory& factory) const {
    const std::vector<OperandDesc> inputs = DescribeInputs(node), outputs = Describe(node.outputs);
    try {
      return factory({node.op, inputs, outputs, *graph.options.device, graph.options.kernels});
    } catch (const std::exception& error) {
      return Refusal{error.what()};
    }
  }

  // That of the node's first candidate, if it is to be asked ahead.
  static const KernelFactory* AheadFactory(const Graph& graph, const Node& node) {
    const DeviceKind device = graph.options.device->kind();
    const auto& candidates = KernelRegistry::Get().Candidates(device, node.op.type());
    const auto first = std::find_if(
        candidates.begin(), candidates.end(),
        [&](const KernelCandidate& candidate) { return candidate.Serves(node.signature); });
    if (first == candidates.end()) return nullptr;
    return AheadFactories::Get().Find(device, node.op.type(), *first);
  }

  std::vector<OperandDesc> DescribeInputs(const Node& node) const {
    std::vector<OperandDesc> inputs = Describe(node.inputs);
    for (size_t i = 0; i < inputs.size(); ++i)
      inputs[i].may_be_packed = lasting_.count(node.inputs[i]) > 0;
    return inputs;
  }

  // The copy is a tensor of bytes, of which none may have more.
  static bool IsPackedTooLarge(const KernelOrRefusal& answer) {
    const auto* kernel = std::get_if<Kernel>(&answer);
    return kernel != nullptr && kernel->packed_weights &&
           kernel->packed_weights->bytes > std::numeric_limits<int32_t>::max();
  }

  static void Pack(Graph& graph, Node& node) {
    const PackedOperand& packed = *node.kernel.packed_weights;
    Operand& weights = node.inputs[packed.operand];
    Value& copy =
        graph.NewValue(weights->name + " packed", Shape{static_cast<int64_t>(packed.bytes)},
                       DType::kUInt8, ValueKind::kState);
    copy.layer = weights->layer;
    Node& pack =
        graph.InsertBefore(node, ops::PackWeights{node.kernel.name}, {weights.value}, {&copy});
    pack.kernel = {node.kernel.name + " (packing)", packed.pack, packed.workspace_bytes};
    pack.signature = node.signature;
    weights = Operand(&copy);
    weights.dtype = DType::kUInt8;
    weights.role = Role::kExact;
  }

  void Select(const Graph& graph, Node& node) const {
    Device& device = *graph.options.device;
    std::vector<OperandDesc> inputs = DescribeInputs(node);
    const std::vector<OperandDesc> outputs = Describe(node.outputs);
    node.refusals.clear();
    for (const KernelCandidate& candidate :
         KernelRegistry::Get().Candidates(device.kind(), node.op.type())) {
      if (!candidate.Serves(node.signature)) {
        node.refusals.push_back(
            StrCat(candidate.name, ": does not take ", Name(node.signature.data)));
        continue;
      }
      const KernelRequest request{node.op, inputs, outputs, device, graph.options.kernels};
      KernelOrRefusal answer = candidate.factory(request);
      if (IsPackedTooLarge(answer)) {
        for (OperandDesc& input : inputs) input.may_be_packed = false;
        answer = candidate.factory(request);
      }
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

  std::set<const Value*> lasting_;
};

std::unique_ptr<Pass> MakeSelectKernels() {
  return std::make_unique<SelectKernels>();
}

}  // namespace caffe::passes
