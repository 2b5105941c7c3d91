#include <glog/logging.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "caffe/core/join_refusals.hpp"
#include "caffe/core/processors.hpp"
#include "caffe/core/start_thread.hpp"
#include "caffe/graph/layer_place.hpp"
#include "caffe/graph/shared_parts.hpp"
#include "caffe/graph/weight_copies.hpp"
#include "caffe/ops/pack.hpp"
#include "caffe/ops/plan_ahead.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {
namespace {

// Each thread may create a library handle and compile kernels, which takes some 100 MB.
constexpr int kMostPlanningThreads = 16;

template <typename Operands>
std::vector<OperandDesc> Describe(const Operands& values, bool may_be_packed) {
  std::vector<OperandDesc> operands;
  for (const Value* value : values) {
    OperandDesc& operand = operands.emplace_back();
    operand.may_be_packed = may_be_packed;
    operand.present = value != nullptr;
    if (value != nullptr) static_cast<TensorDesc&>(operand) = value->desc;
  }
  return operands;
}

}  // namespace

// After this pass every node has the first kernel of its device that accepts its shapes, types and
// layouts, with its workspace size, and records why better kernels refused. Kernels that read
// weights or write gradients in their own order have a conversion before or after them. In testing
// its result outlives the run, unless it is too large; in training each update would invalidate it,
// so it is in the arena. The pass follows everything that may still change an operand.
class SelectKernels final : public Pass {
 public:
  std::string_view name() const override { return "select-kernels"; }
  Established establishes() const override { return {.kernels = true}; }

  void Run(Graph& graph) override {
    FindConstantWeights(graph);
    last_reads_.emplace(graph);
    const std::vector<KernelOrRefusal> ahead = PlanAhead(graph);
    for (Node* node : graph.ScheduledNodes()) {
      Select(graph, *node);
      if (node->kernel.packed_weights) PackWeights(graph, *node);
      if (node->kernel.packed_gradient) UnpackGradient(graph, *node);
    }
    graph.workspace_bytes = 0;
    const std::set<const Node*> makers = CopyMakers(graph);
    for (const Node* node : graph.ScheduledNodes()) {
      if (makers.count(node) > 0) continue;
      graph.workspace_bytes =
          std::max(graph.workspace_bytes, static_cast<int64_t>(node->kernel.workspace_bytes));
    }
  }

 private:
  // The last node that reads a value, so that its memory is free for the node's result. A kernel
  // that adds in place rounds differently from one that does not. The answer therefore ignores
  // recomputation: a node and its recomputation get the same kernel, with any memory limit.
  class LastReads {
   public:
    explicit LastReads(const Graph& graph) {
      // Programs may run with other kernels.
      if (graph.options.keep_all || graph.options.for_any_processor) return;
      writers_ = Writers(graph);
      for (const Node* node : graph.ScheduledNodes()) {
        if (node->is_recomputation) continue;
        for (const Value* input : node->inputs) {
          if (input != nullptr) last_[input->of_forward()] = node;
        }
        for (const SharedPart& shared : SharedParts(*node))
          shared_.insert({shared.part->of_forward(), shared.whole->of_forward()});
      }
    }

    bool IsLast(const Node& node, const Value* value) const {
      if (value == nullptr || value->kind != ValueKind::kActivation || value->is_kept ||
          value->owner != nullptr) {
        return false;
      }
      const auto found = last_.find(value->of_forward());
      return found != last_.end() && found->second == &InForward(node) &&
             shared_.count(value->of_forward()) == 0 &&
             std::ranges::count(node.inputs, value, &Operand::value) == 1;
    }

   private:
    // The forward node of a recomputation, if it still exists.
    const Node& InForward(const Node& node) const {
      if (!node.is_recomputation) return node;
      for (const Value* output : node.outputs) {
        const auto writer =
            output == nullptr ? writers_.end() : writers_.find(output->of_forward());
        if (writer != writers_.end()) return *writer->second;
      }
      return node;
    }

    std::map<const Value*, Node*> writers_;
    std::map<const Value*, const Node*> last_;
    std::set<const Value*> shared_;  // values that share memory with others
  };

  // Finds parameters that no run writes, and copies of them.
  void FindConstantWeights(const Graph& graph) {
    constants_.clear();
    if (graph.options.is_training_phase || graph.options.is_disabled("keep-weight-copies")) return;
    const std::set<const Value*> written = WrittenParams(graph);
    for (const Node* node : graph.ScheduledNodes()) {
      for (Value* input : node->inputs) {
        if (input != nullptr && input->kind == ValueKind::kParam &&
            written.count(input->root()) == 0) {
          constants_.insert(input);
        }
      }
    }
    for (const WeightCopy& copy : WeightCopies(graph))
      constants_.insert(copy.results.begin(), copy.results.end());
    FindFreed(graph);
  }

  // Constants that a single node reads, and that are made from weights which nothing else reads.
  void FindFreed(const Graph& graph) {
    freed_.clear();
    if (graph.options.weights_change || graph.options.for_any_processor) return;
    std::map<const Value*, int> readers;  // of weights as a whole, and of their copies
    for (const Node* node : graph.ScheduledNodes()) {
      for (Value* input : node->inputs)
        if (input != nullptr) ++readers[input->root()];
    }
    const auto is_read_once = [&](Value* value) { return readers[value->root()] == 1; };
    for (Value* value : constants_)
      if (value->kind == ValueKind::kParam && is_read_once(value)) freed_.insert(value);
    for (const WeightCopy& copy : WeightCopies(graph)) {
      if (std::ranges::all_of(copy.weights, is_read_once) &&
          std::ranges::all_of(copy.results, is_read_once)) {
        freed_.insert(copy.results.begin(), copy.results.end());
      }
    }
  }

  // Steps that run only when weights have changed. They get workspace for that time.
  static std::set<const Node*> CopyMakers(const Graph& graph) {
    std::set<const Node*> makers;
    if (graph.options.is_training_phase) return makers;
    for (const WeightCopy& copy : WeightCopies(graph)) makers.insert(copy.node);
    return makers;
  }

  // Asks slow factories in parallel, one node per thread. Their compiled code stays cached as long
  // as the answers exist.
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
    const size_t wanted = std::min<size_t>(
        slow.size(), static_cast<size_t>(std::min(UsableProcessors(), kMostPlanningThreads)));
    std::vector<std::thread> threads;
    try {
      while (threads.size() < wanted) threads.push_back(StartThread("planning", work));
    } catch (const DeviceError&) {  // fewer threads are enough
    }
    for (std::thread& thread : threads) thread.join();
    return answers;
  }

  // Errors are ignored here, because the final request repeats them.
  KernelOrRefusal AnswerAhead(const Graph& graph, const Node& node,
                              const KernelFactory& factory) const {
    try {
      return Ask(graph, node, factory, Packs(graph));
    } catch (const std::exception& error) {
      return Refusal{error.what()};
    }
  }

  KernelOrRefusal Ask(const Graph& graph, const Node& node, const KernelFactory& factory,
                      bool may_be_packed) const {
    std::vector<OperandDesc> inputs = Describe(node.inputs, may_be_packed);
    for (size_t i = 0; i < inputs.size(); ++i) {
      inputs[i].is_constant = constants_.count(node.inputs[i]) > 0;
      inputs[i].packing_frees_it = freed_.count(node.inputs[i]) > 0;
      inputs[i].is_last_read = last_reads_->IsLast(node, node.inputs[i]);
    }
    const std::vector<OperandDesc> outputs = Describe(node.outputs, may_be_packed);
    return factory(
        {node.op, inputs, outputs, *graph.options.device, graph.options.kernels, node.rounds()});
  }

  // The factory of the node's first candidate, if it is to be asked ahead.
  static const KernelFactory* AheadFactory(const Graph& graph, const Node& node) {
    const DeviceKind device = graph.options.device->kind();
    const auto& candidates = KernelRegistry::Get().Candidates(device, node.op.type());
    const auto first =
        std::find_if(candidates.begin(), candidates.end(), [&](const KernelCandidate& candidate) {
          return candidate.Serves(node.op, node.signature);
        });
    if (first == candidates.end()) return nullptr;
    return AheadFactories::Get().Find(device, node.op.type(), *first);
  }

  // True if the plan converts operands for kernels; otherwise kernels do.
  static bool Packs(const Graph& graph) { return !graph.options.is_disabled("keep-weight-copies"); }

  // A packed operand is a tensor of bytes, whose size is limited.
  static bool IsPackedTooLarge(const KernelOrRefusal& answer) {
    const auto* kernel = std::get_if<Kernel>(&answer);
    const auto is_large = [](const std::optional<PackedOperand>& packed) {
      return packed && packed->bytes > std::numeric_limits<int32_t>::max();
    };
    return kernel != nullptr &&
           (is_large(kernel->packed_weights) || is_large(kernel->packed_gradient));
  }

  void PackWeights(Graph& graph, Node& node) const {
    const PackedOperand& packed = *node.kernel.packed_weights;
    Operand& weights = node.inputs[packed.operand];
    // Programs have the weights as they are, and no place for others among activations.
    const bool is_kept = !packed.in_each_pass || graph.options.for_any_processor;
    const bool lasts = constants_.count(weights.value) > 0 && is_kept;
    Value& copy = PackedValue(graph, *weights.value, packed,
                              lasts ? ValueKind::kState : ValueKind::kActivation);
    Node& pack = graph.InsertBefore(lasts ? node : FirstOfLoop(graph, node),
                                    ops::PackWeights{node.kernel.name, packed.order},
                                    {weights.value}, {&copy});
    pack.kernel = {node.kernel.name + " (packing)", packed.convert, packed.workspace_bytes};
    pack.kernel.row_packing = packed.rows;
    pack.signature = node.signature;
    pack.layers = {node.layers.front()};
    pack.loop = nullptr;
    Replace(&weights, &copy);
  }

  // The first node of the node's loop; the node itself without a loop.
  static Node& FirstOfLoop(const Graph& graph, Node& node) {
    if (node.loop == nullptr) return node;
    const std::vector<Node*> nodes = graph.ScheduledNodes();
    return **std::ranges::find(nodes, node.loop, &Node::loop);
  }

  static void UnpackGradient(Graph& graph, Node& node) {
    const PackedOperand& packed = *node.kernel.packed_gradient;
    Result& gradient = node.outputs[packed.operand];
    Value& bytes = PackedValue(graph, *gradient.value, packed, ValueKind::kActivation);
    Node& unpack =
        graph.InsertAfter(node, ops::UnpackGradient{node.kernel.name}, {&bytes}, {gradient.value});
    unpack.kernel = {node.kernel.name + " (unpacking)", packed.convert, packed.workspace_bytes};
    unpack.signature = node.signature;
    unpack.outputs[0].accumulation = std::exchange(gradient.accumulation, Accumulation::kNever);
    Replace(&gradient, &bytes);
  }

  static Value& PackedValue(Graph& graph, const Value& plain, const PackedOperand& packed,
                            ValueKind kind) {
    Value& value = graph.NewValue(plain.name + " packed", Shape{static_cast<int64_t>(packed.bytes)},
                                  DType::kUInt8, kind);
    value.layer = plain.layer;
    value.is_scratch = true;
    value.packed_from = &plain;
    return value;
  }

  static void Replace(Operand* operand, Value* packed) {
    operand->value = packed;
    operand->dtype = DType::kUInt8;
    operand->role = Role::kExact;
  }

  // If no library supports a convolution or product, a GPU uses the reference kernel, which is 100
  // times slower. Warns once for each reason.
  static void WarnOfDefinition(const Graph& graph, const Node& node, KernelRank rank,
                               const std::string& declined) {
    constexpr double kFlopsPerByte = 8;  // below it, memory bandwidth is the limit
    const Device& device = *graph.options.device;
    if (device.is_described() || device.is_host_accessible() || rank != KernelRank::kReference ||
        node.Flops() < kFlopsPerByte * static_cast<double>(node.BytesMoved()))
      return;
    static std::mutex mutex;
    static std::set<std::string> told;
    const std::lock_guard lock(mutex);
    LOG_IF(WARNING, told.insert(declined).second)
        << PlaceOf(graph.calls[node.layers.front()].layer->param()) << ": " << node.op.name()
        << " is computed by its definition, which is slow: " << declined;
  }

  void Select(const Graph& graph, Node& node) const {
    const DeviceKind device = graph.options.device->kind();
    node.refusals.clear();
    std::string declined;
    for (const KernelCandidate& candidate :
         KernelRegistry::Get().Candidates(device, node.op.type())) {
      if (!candidate.IsFor(node.op)) continue;
      if (!candidate.Serves(node.signature)) {
        node.refusals.push_back(
            StrCat(candidate.name, ": does not take ", Name(node.signature.data)));
        continue;
      }
      KernelOrRefusal answer = Ask(graph, node, candidate.factory, Packs(graph));
      if (IsPackedTooLarge(answer))
        answer = Ask(graph, node, candidate.factory, /*may_be_packed=*/false);
      if (Kernel* kernel = std::get_if<Kernel>(&answer)) {
        node.kernel = std::move(*kernel);
        if (!declined.empty()) WarnOfDefinition(graph, node, candidate.rank, declined);
        return;
      }
      node.refusals.push_back(candidate.name + ": " + std::get<Refusal>(answer).reason);
      declined = node.refusals.back();
    }
    std::string tried;
    for (const std::string& refusal : JoinRefusals(node.refusals)) tried += "; " + refusal;
    const Layer& layer = *graph.calls[node.layers.front()].layer;
    throw Unsupported(StrCat(PlaceOf(layer.param()), ": no kernel for ", node.op.name(), " on ",
                             Name(device), tried.empty() ? "; this build has none" : tried));
  }

  std::set<Value*> constants_, freed_;
  std::optional<LastReads> last_reads_;
};

std::unique_ptr<Pass> MakeSelectKernels() {
  return std::make_unique<SelectKernels>();
}

}  // namespace caffe::passes
