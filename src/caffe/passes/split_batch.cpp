#include <omp.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "caffe/graph/shared_parts.hpp"
#include "caffe/graph/weight_copies.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/fused.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {
namespace {

// Bytes of images that a step may read and write in a round, for each thread: they fit into the
// second-level caches, or into a core's share of the third.
constexpr int64_t kRoundBytes = 2 << 20;

// A round computes at least so much, relative to the weights that it reads again, that reading them
// takes a twentieth of the time where caches deliver 10 bytes in the time of 100 operations.
constexpr double kFlopsPerByte = 200;

// A round reads and writes at least so many bytes of images, because each step starts all threads.
constexpr int64_t kFewestBytes = 128 << 10;

// The last round may repeat items if they are at most this part of the batch.
constexpr int64_t kFewRepeated = 16;

// Calls fn(operand) for each input that consists of items, and each output.
template <typename Fn>
void ForEachOfItems(Node& node, const Fn& fn) {
  const OperandSet of_items = node.op.item_inputs();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != nullptr && of_items.contains(i)) fn(node.inputs[i]);
  }
  for (Result& output : node.outputs) fn(output);
}

// A step whose items are independent.
struct ItemStep {
  Node* node = nullptr;
  int64_t items = 0;
  int64_t least = 0, most = 0;  // items that a round should have

  // Nothing for a node whose items depend on each other, or that has none.
  static std::optional<ItemStep> Of(Node& node) {
    const OperandSet of_items = node.op.item_inputs();
    int64_t items = 0, item_bytes = 0, shared_bytes = 0;
    const auto add = [&](const Value& value) {
      const bool has_items = value.desc.shape.num_axes() > 0 && value.desc.count() > 0;
      if (!has_items || value.owner != nullptr) return false;
      if (items == 0) items = value.desc.shape[0];
      item_bytes += static_cast<int64_t>(value.desc.bytes()) / value.desc.shape[0];
      return value.desc.shape[0] == items;
    };
    for (const Value* output : node.outputs) {
      const bool is_result = output != nullptr && output->kind == ValueKind::kActivation;
      if (!is_result || !add(*output)) return std::nullopt;
    }
    bool reads_items = false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Value* input = node.inputs[i];
      if (input == nullptr) continue;
      if (!of_items.contains(i)) {
        shared_bytes += static_cast<int64_t>(input->desc.bytes());
        continue;
      }
      const bool is_data =
          input->kind == ValueKind::kActivation || input->kind == ValueKind::kExternal;
      if (!is_data || !add(*input)) return std::nullopt;
      reads_items = true;
    }
    if (!reads_items) return std::nullopt;
    const double by_weights =
        kFlopsPerByte * static_cast<double>(shared_bytes * items) / std::max(node.Flops(), 1.0);
    const int64_t by_bytes = (kFewestBytes + item_bytes - 1) / item_bytes;
    ItemStep step{&node, items};
    step.least = std::min(std::max(by_bytes, static_cast<int64_t>(std::ceil(by_weights))), items);
    step.most = std::clamp(kRoundBytes * omp_get_max_threads() / item_bytes, step.least, items);
    return step;
  }
};

// Steps that follow each other and may run in one loop.
struct Stretch {
  std::vector<Node*> nodes;
  int64_t items = 0;
  int64_t least = 0, most = 0;  // items that a round should have

  bool Writes(const Value* value) const {
    return std::ranges::any_of(nodes, [&](const Node* node) {
      return std::ranges::find(node->outputs, value, &Operand::value) != node->outputs.end();
    });
  }
  bool Takes(const ItemStep& step) const {
    if (nodes.empty()) return true;
    if (step.items != items) return false;
    const OperandSet of_items = step.node->op.item_inputs();
    for (size_t i = 0; i < step.node->inputs.size(); ++i) {
      if (!of_items.contains(i) && Writes(step.node->inputs[i])) return false;
    }
    return ContinuesPart(*step.node) || (step.least <= most && least <= step.most);
  }
  // True if the node writes other channels of a result of this stretch.
  bool ContinuesPart(const Node& node) const {
    return std::ranges::any_of(SharedParts(node),
                               [&](const SharedPart& shared) { return Writes(shared.part); });
  }
  void Add(const ItemStep& step) {
    least = std::max(least, step.least);
    most = nodes.empty() ? step.most : std::min(most, step.most);
    items = step.items;
    nodes.push_back(step.node);
  }
  // Rounds of `most` items, or of the next smaller or larger number with which the last round
  // repeats few items; one round if there is none. Parts of channels may require `most` < `least`.
  BatchLoop Loop() const {
    const auto repeated = [&](int64_t at_once) {
      return BatchLoop{items, at_once}.rounds() * at_once - items;
    };
    int64_t best = most;
    const auto consider = [&](int64_t at_once) {
      const bool is_needed = repeated(best) > items / kFewRepeated;
      if (is_needed && repeated(at_once) < repeated(best)) best = at_once;
    };
    for (int64_t at_once = most - 1; at_once >= std::max(least, most / 2); --at_once)
      consider(at_once);
    for (int64_t at_once = most + 1; at_once <= std::min(items, 2 * most); ++at_once)
      consider(at_once);
    if (repeated(best) > items / kFewRepeated) best = items;
    return {items, best};
  }
};

}  // namespace

// After this pass some steps of a plan for testing run in loops, each round for a part of the
// batch, so that what one step writes is still in the caches when the next one reads it, and takes
// less memory: depth before breadth. All ops of a loop must have item inputs. A tensor that steps
// outside the loop use, too, has all items; the loop's nodes have values of their own for a round's
// items, whose owner it is. Plans for training hardly gain: the backward pass reads every image.
class SplitBatch final : public Pass {
 public:
  std::string_view name() const override { return "split-batch"; }
  bool is_optional() const override { return true; }

  void Run(Graph& graph) override {
    const CompileOptions& options = graph.options;
    const bool is_on_cpu =
        options.device->kind() == DeviceKind::kCpu && !options.device->is_described();
    if (!is_on_cpu || options.is_training_phase || options.with_backward || options.keep_all ||
        options.for_any_processor) {
      return;
    }
    readers_ = Readers(graph);
    for (const Stretch& stretch : FindStretches(graph)) {
      if (!Pays(stretch)) continue;
      const BatchLoop loop = stretch.Loop();
      if (loop.rounds() > 1) MakeLoop(graph, stretch, loop);
    }
  }

 private:
  static std::vector<Stretch> FindStretches(const Graph& graph) {
    std::set<const Node*> copies;
    for (const WeightCopy& copy : WeightCopies(graph)) copies.insert(copy.node);
    // A layer whose host call finds other shapes runs again from its first step on.
    std::set<int> host_layers;
    for (const Node* node : graph.ScheduledNodes()) {
      if (node->op.As<ops::HostCall>() != nullptr) host_layers.insert(node->layers.front());
    }
    std::vector<Stretch> found(1);
    for (Node* node : graph.ScheduledNodes()) {
      if (copies.contains(node)) continue;
      std::optional<ItemStep> step;
      if (!host_layers.contains(node->layers.front())) step = ItemStep::Of(*node);
      if (!step || !found.back().Takes(*step)) found.emplace_back();
      if (step) found.back().Add(*step);
    }
    return found;
  }

  void MakeLoop(Graph& graph, const Stretch& stretch, const BatchLoop& batch) {
    const auto loop = std::make_shared<const BatchLoop>(batch);
    std::map<const Value*, Value*> parts;
    const auto part_of = [&](Operand& operand) {
      Value*& part = parts[operand.value];
      if (part == nullptr) part = &PartOf(graph, stretch, *operand.value, batch.at_once);
      operand.value = part;
    };
    for (Node* node : stretch.nodes) {
      ForEachOfItems(*node, part_of);
      if (const auto* region = node->op.As<ops::Fused>())
        node->op = region->ForItems(batch.at_once);
      node->loop = loop;
    }
    ShareOwners(stretch, &parts);
  }

  // True if the loop keeps more bytes in the caches than it takes from elsewhere and gives to
  // others, which are not computed in place.
  bool Pays(const Stretch& stretch) const {
    std::set<const Value*> counted;
    int64_t inside = 0, around = 0;
    const auto count = [&](const Value* value) {
      if (!counted.insert(value).second) return;
      (IsOnlyUsedIn(stretch, *value) ? inside : around) +=
          static_cast<int64_t>(value->desc.bytes());
    };
    for (Node* node : stretch.nodes) ForEachOfItems(*node, count);
    return inside > around;
  }

  // The items of a round. Values that only the loop uses have no other items.
  Value& PartOf(Graph& graph, const Stretch& stretch, Value& whole, int64_t items) const {
    Value& part = graph.NewValue(whole.name, whole.desc.shape, whole.desc.dtype, whole.kind);
    part.desc = whole.desc;
    part.desc.shape = whole.desc.shape.With(0, items);
    part.at_least_float = whole.at_least_float;
    part.layer = whole.layer;
    part.is_scratch = whole.is_scratch;
    if (IsOnlyUsedIn(stretch, whole)) return part;
    part.owner = &whole;
    part.is_kept = whole.is_kept;
    part.must_be_plain = whole.must_be_plain;
    return part;
  }

  bool IsOnlyUsedIn(const Stretch& stretch, const Value& value) const {
    if (value.is_kept || !stretch.Writes(&value)) return false;
    const auto readers = readers_.find(&value);
    return readers == readers_.end() || std::ranges::all_of(readers->second, [&](const Node* node) {
             return std::ranges::find(stretch.nodes, node) != stretch.nodes.end();
           });
  }

  // Steps that write some channels each leave the others where they are, also in a loop's result.
  static void ShareOwners(const Stretch& stretch, std::map<const Value*, Value*>* parts) {
    for (auto node = stretch.nodes.rbegin(); node != stretch.nodes.rend(); ++node) {
      for (const SharedPart& shared : SharedParts(**node)) {
        for (const auto& [whole, part] : *parts) {
          const bool is_same =
              part == shared.part && shared.part->desc.bytes() == shared.whole->desc.bytes();
          if (is_same && part->owner == nullptr) part->owner = shared.whole->owner;
        }
      }
    }
  }

  std::map<const Value*, std::vector<Node*>> readers_;
};

std::unique_ptr<Pass> MakeSplitBatch() {
  return std::make_unique<SplitBatch>();
}

}  // namespace caffe::passes
