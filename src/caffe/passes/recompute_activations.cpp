#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "caffe/device/device.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {
namespace {

// Roughly the number of multiply-adds that take as long as reading or writing one byte.
double FlopsPerByte(const Device& device) {
  return device.kind() == DeviceKind::kCpu ? 10 : 100;
}

bool IsConversion(const Op& op) {
  return op.As<ops::Cast>() != nullptr || op.As<ops::Reorder>() != nullptr;
}

bool IsActivation(const Value* value) {
  return value != nullptr && value->kind == ValueKind::kActivation;
}

int64_t BytesOf(const Value* value) {
  return value == nullptr ? 0 : static_cast<int64_t>(value->desc.bytes());
}

template <typename Operands>
int64_t SumOfBytes(const Operands& operands) {
  int64_t bytes = 0;
  for (const Value* value : operands) bytes += BytesOf(value);
  return bytes;
}

}  // namespace

// After this pass the results of options.recomputed_nodes nodes of forward are not kept for
// backward, which runs copies of these nodes before it reads them (Chen et al. 2016, "Training Deep
// Nets with Sublinear Memory Cost"; here node by node). Nodes that free the most bytes per time are
// chosen first. A copy may read results of other copies, but the bytes of such chains are limited,
// because a whole chain is alive at once. Nodes before a host call that may find other shapes are
// not chosen, because the plan for these shapes takes over results and may keep different ones. It
// follows the passes that choose types, layouts and fusions, so copies compute the same bits. Later
// passes decide as if nothing was recomputed (Value::of_forward).
class RecomputeActivations final : public Pass {
 public:
  std::string_view name() const override { return "recompute-activations"; }
  bool is_optional() const override { return true; }

  void Run(Graph& graph) override {
    if (graph.options.recomputed_nodes == 0 || graph.options.keep_all) return;
    graph_ = &graph;
    Survey();
    Choose();
    Rewire();
    graph.recomputed_nodes = static_cast<int>(chosen_.size());
  }

 private:
  // A node that could be recomputed.
  struct Candidate {
    Node* node = nullptr;
    int64_t freed = 0;  // bytes
    double cost = 0;    // bytes moved, plus the equivalent of the arithmetic
    double gain() const { return static_cast<double>(freed) / cost; }
  };

  void Survey() {
    writers_ = Writers(*graph_);
    changed_ = WrittenParams(*graph_);
    for (const auto& [blob, external] : graph_->external_data) {
      if (graph_->blobs.at(blob) != external) changed_.insert(external);
    }
    std::set<const Node*> done;
    for (Node* node : graph_->ScheduledNodes()) {
      const auto* call = node->op.As<ops::HostCall>();
      if (call != nullptr && call->call.may_change_shapes()) fixed_ = done;
      done.insert(node);
      if (node->direction != Direction::kBackward) continue;
      for (const Value* input : node->inputs) {
        const Node* writer = WriterOf(input);
        if (writer != nullptr && writer->direction == Direction::kForward) saved_.insert(input);
      }
    }
    for (const Value* value : saved_) saved_bytes_ += BytesOf(value);
  }

  Node* WriterOf(const Value* value) const {
    const auto found = writers_.find(value);
    return found == writers_.end() ? nullptr : found->second;
  }

  // True if the node computes the same whenever it runs: it reads nothing that changes within the
  // pass, and writes nothing persistent except updates, which the copy omits.
  bool IsRepeatable(const Node& node) const {
    if (fixed_.count(&node) > 0 || IsWeightCopy(node.outputs[0])) return false;
    if (node.op.As<ops::HostCall>() != nullptr || node.direction != Direction::kForward)
      return false;
    bool makes_activations = true;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const Value* output = node.outputs[i];
      const bool may_go = output == nullptr || node.op.updates().contains(i);
      makes_activations =
          makes_activations && (may_go || (IsActivation(output) && !output->is_kept));
    }
    const bool reads_constants = std::ranges::none_of(node.inputs, [&](Value* input) {
      return input != nullptr && !IsActivation(input) && changed_.count(input->root()) > 0;
    });
    return makes_activations && reads_constants;
  }

  // True if freeing the result is worth it; small results, such as statistics, are kept.
  bool IsFreed(const Node& node, const Value* output) const {
    int64_t largest = 0;
    for (const Value* other : node.outputs) largest = std::max(largest, BytesOf(other));
    return output != nullptr && saved_.count(output) > 0 && BytesOf(output) * 16 >= largest;
  }

  double CostOf(const Node& node) const {
    return node.BytesMoved() + node.Flops() / FlopsPerByte(*graph_->options.device);
  }

  std::vector<Candidate> Candidates() const {
    std::vector<Candidate> candidates;
    for (Node* node : graph_->ScheduledNodes()) {
      if (!IsRepeatable(*node)) continue;
      Candidate candidate{node, 0, CostOf(*node)};
      for (const Value* output : node->outputs) {
        if (IsFreed(*node, output)) candidate.freed += BytesOf(output);
      }
      if (candidate.freed > 0) candidates.push_back(candidate);
    }
    std::ranges::stable_sort(candidates, std::greater<>(), &Candidate::gain);
    return candidates;
  }

  // True for a weight in another type or layout, which keep-weight-copies keeps from pass to pass.
  bool IsWeightCopy(const Value* value) const {
    const Node* writer = WriterOf(value);
    return writer != nullptr && IsConversion(writer->op) && !IsActivation(writer->inputs[0]);
  }

  bool IsThere(const Value* value) const {
    return !IsActivation(value) || IsWeightCopy(value) ||
           (saved_.count(value) > 0 && freed_.count(value) == 0);
  }

  // True if the node's operands exist in backward, are recomputed by chosen nodes, or are
  // conversions of such values.
  bool HasOperands(const Node& node) const {
    return std::ranges::all_of(node.inputs, [&](const Value* input) {
      if (IsThere(input) || saved_.count(input) > 0) return true;
      const Node* writer = WriterOf(input);
      return writer != nullptr && IsConversion(writer->op) && IsRepeatable(*writer) &&
             HasOperands(*writer);
    });
  }

  void Choose() {
    const int64_t longest = saved_bytes_ / kChains;
    for (const Candidate& candidate : Candidates()) {
      if (static_cast<int>(chosen_.size()) == graph_->options.recomputed_nodes) return;
      if (!HasOperands(*candidate.node)) continue;
      const std::set<const Node*> chain = ChainWith(*candidate.node);
      int64_t bytes = 0;
      for (const Node* node : chain) bytes += SumOfBytes(node->outputs);
      if (chain.size() > 1 && bytes > longest) continue;
      chosen_.insert(candidate.node);
      for (Value* output : candidate.node->outputs) {
        if (IsFreed(*candidate.node, output)) freed_.insert(output);
      }
      for (const Node* node : chain) chains_[node] = chain;
    }
  }

  // The node with all chosen nodes that it would form a chain with.
  std::set<const Node*> ChainWith(const Node& node) const {
    std::set<const Node*> chain = {&node};
    const auto join = [&](const Node* other) {
      const auto found = chains_.find(other);
      if (found != chains_.end()) chain.insert(found->second.begin(), found->second.end());
    };
    for (const Value* input : node.inputs) {
      if (freed_.count(input) > 0) join(WriterOf(input));
    }
    for (const Node* other : chosen_) {
      const bool reads_it = std::ranges::any_of(other->inputs, [&](const Value* input) {
        return input != nullptr && WriterOf(input) == &node && IsFreed(node, input);
      });
      if (reads_it) join(other);
    }
    return chain;
  }

  void Rewire() {
    for (Node* node : graph_->ScheduledNodes()) {
      if (node->direction != Direction::kBackward) continue;
      for (Operand& input : node->inputs) {
        if (input != nullptr && freed_.count(input) > 0) input.value = Again(input, *node);
      }
    }
  }

  // Returns the recomputed value; inserts its computation before `reader` unless it exists.
  Value* Again(const Value* value, const Node& reader) {
    const auto made = again_.find(value);
    if (made != again_.end()) return made->second;
    const Node& original = *WriterOf(value);
    std::vector<Value*> inputs, outputs;
    for (const Operand& input : original.inputs) {
      inputs.push_back(IsThere(input) ? input.value : Again(input, reader));
    }
    for (size_t i = 0; i < original.outputs.size(); ++i) {
      const Value* output = original.outputs[i];
      const bool is_made = output != nullptr && !original.op.updates().contains(i);
      outputs.push_back(is_made ? &CopyOf(*output) : nullptr);
      if (is_made) again_[output] = outputs.back();
    }
    Node& copy = graph_->InsertBefore(reader, original.op, inputs, outputs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      copy.inputs[i].dtype = original.inputs[i].dtype;
      copy.inputs[i].role = original.inputs[i].role;
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      copy.outputs[i].dtype = original.outputs[i].dtype;
      copy.outputs[i].role = original.outputs[i].role;
    }
    copy.layers = original.layers;
    copy.signature = original.signature;
    copy.precision_note = original.precision_note;
    copy.is_recomputation = true;
    return again_.at(value);
  }

  Value& CopyOf(const Value& value) {
    Value& copy =
        graph_->NewValue(value.name, value.desc.shape, value.desc.dtype, ValueKind::kActivation);
    copy.desc = value.desc;
    copy.at_least_float = value.at_least_float;
    copy.layer = value.layer;
    copy.recomputed_from = &value;
    return copy;
  }

  // A chain may take at most 1 / kChains of the bytes that are kept for backward.
  static constexpr int64_t kChains = 4;

  Graph* graph_ = nullptr;
  std::map<const Value*, Node*> writers_;
  // Values that the pass writes more than once: running statistics, inputs that layers overwrite.
  std::set<const Value*> changed_;
  std::set<const Node*> fixed_;   // before the last host call that may change shapes
  std::set<const Value*> saved_;  // made in forward, read in backward
  int64_t saved_bytes_ = 0;
  std::set<const Node*> chosen_;
  std::set<const Value*> freed_;  // their results that are not kept
  // For each chosen node: its chain, the nodes that are connected because one reads another's
  // results.
  std::map<const Node*, std::set<const Node*>> chains_;
  std::map<const Value*, Value*> again_;
};

std::unique_ptr<Pass> MakeRecomputeActivations() {
  return std::make_unique<RecomputeActivations>();
}

}  // namespace caffe::passes
