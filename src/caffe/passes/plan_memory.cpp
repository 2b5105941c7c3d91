#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "caffe/core/cache_lines.hpp"
#include "caffe/graph/shared_parts.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {

// After this pass every activation without memory of its own has an offset in one arena, such that
// values alive at the same time do not overlap. Values that are joined by a view, or by an op or a
// kernel that works in place at its input's last use, share memory. Parts of a concatenation or of
// a sliced value are placed inside it if the arena does not grow. Offsets are found by first fit,
// largest first. In a keep-all plan only scratch values share memory, because any blob may be read
// between any two steps. It is the last pass: the schedule is final.
class PlanMemory final : public Pass {
 public:
  std::string_view name() const override { return "plan-memory"; }
  Established establishes() const override { return {.memory = true}; }

  void Run(Graph& graph) override {
    Plan(graph, Sharing::kNone);
    const bool has_parts = std::ranges::any_of(graph.ScheduledNodes(), [](const Node* node) {
      return !node->op.is_view() && !SharedParts(*node).empty();
    });
    if (!has_parts || graph.options.keep_all) return;
    const int64_t bytes_apart = graph.arena_bytes;
    for (const Sharing sharing : {Sharing::kAll, Sharing::kUnlessItCosts}) {
      Plan(graph, sharing);
      if (graph.arena_bytes <= bytes_apart) return;
    }
    Plan(graph, Sharing::kNone);
  }

 private:
  // Which parts are placed inside their whole.
  enum class Sharing { kNone, kUnlessItCosts, kAll };

  // A set of values that share memory.
  struct Group {
    int first = std::numeric_limits<int>::max();  // step that writes it
    int last = -1;                                // last step that touches it
    int64_t bytes = 0;
    int64_t offset = 0;
    bool is_scratch = false;

    // Memory times the number of steps for which it is in use.
    int64_t Cost() const { return WholeLines(bytes) * (last - first + 1); }
    void Include(const Group& other) {
      first = std::min(first, other.first);
      last = std::max(last, other.last);
    }
  };

  // Position of a value: a group, by the id of one of its values, and the offset in the group.
  struct Spot {
    int group = 0;
    int64_t offset = 0;
    bool operator==(const Spot&) const = default;
  };

  void Plan(Graph& graph, Sharing sharing) {
    const std::vector<Node*> nodes = graph.ScheduledNodes();
    groups_.assign(graph.values().size(), {});
    spots_.resize(graph.values().size());
    for (size_t i = 0; i < spots_.size(); ++i) spots_[i] = {static_cast<int>(i), 0};
    // GPU kernels rely on the alignment of their operands; so do readers of programs.
    const bool fits_any_element =
        graph.options.device->is_host_accessible() && !graph.options.for_any_processor;
    alignment_ = fits_any_element ? 1 : static_cast<int64_t>(kCacheLine);
    FindLifetimes(nodes);
    KeepWhatHostCallsMayNeedAgain(nodes);
    if (!graph.options.keep_all) {
      JoinViews(nodes);
      if (sharing != Sharing::kNone) JoinParts(nodes, sharing);
      JoinInPlace(nodes);
    }
    Place(graph);
  }

  // Items of a value are where the value is.
  static bool IsPlanned(const Value* value) {
    return value != nullptr && value->kind == ValueKind::kActivation && !value->is_kept &&
           value->owner == nullptr;
  }

  static int64_t Bytes(const Value& value) { return static_cast<int64_t>(value.desc.bytes()); }

  Spot SpotOf(const Value& value) const {
    Spot spot = spots_[value.id];
    while (spots_[spot.group].group != spot.group) {
      const Spot& next = spots_[spot.group];
      spot = {next.group, spot.offset + next.offset};
    }
    return spot;
  }

  Group& GroupOf(const Value& value) { return groups_[SpotOf(value).group]; }

  // True if no value of the group extends beyond this one.
  bool FillsGroup(const Value& value) {
    return SpotOf(value).offset == 0 && GroupOf(value).bytes == Bytes(value);
  }

  // Places a part, with all values that share its memory, at `offset` inside the whole. The part
  // must fill its group.
  void Join(const Value& part, const Value& whole, int64_t offset = 0) {
    const Spot from = SpotOf(part), into = SpotOf(whole);
    if (into.group == from.group) return;
    groups_[into.group].Include(groups_[from.group]);
    spots_[from.group] = {into.group, into.offset + offset};
  }

  void FindLifetimes(const std::vector<Node*>& nodes) {
    for (int step = 0; step < static_cast<int>(nodes.size()); ++step) {
      const auto touch = [&](const Value* value, int first, int last) {
        if (!IsPlanned(value)) return;
        Group& group = groups_[value->id];
        group.first = std::min(group.first, first);
        group.last = std::max(group.last, last);
        group.bytes = Bytes(*value);
        group.is_scratch = value->is_scratch;
      };
      const auto use = [&](const Value* value) {
        if (value == nullptr) return;
        // Each round of a loop uses other items, and reads again what was there before the loop, so
        // that these live as long as the loop.
        const auto [first, last] = LoopAround(nodes, step);
        if (value->owner != nullptr) return touch(value->owner, first, last);
        const bool is_older = groups_[value->id].first < first;
        touch(value, step, is_older ? last : step);
      };
      for (const Value* input : nodes[step]->inputs) use(input);
      for (const Value* output : nodes[step]->outputs) use(output);
    }
  }

  // A host call may find that its results have another shape. The layer then restarts with another
  // plan, so the values that its earlier steps (conversions) have read must still exist.
  void KeepWhatHostCallsMayNeedAgain(const std::vector<Node*>& nodes) {
    for (int call = 0; call < static_cast<int>(nodes.size()); ++call) {
      if (nodes[call]->op.As<ops::HostCall>() == nullptr) continue;
      const int layer = nodes[call]->layers.front();
      for (int step = call - 1; step >= 0 && nodes[step]->layers.front() == layer; --step) {
        for (const Value* input : nodes[step]->inputs) {
          if (!IsPlanned(input)) continue;
          Group& group = groups_[input->id];
          group.last = std::max(group.last, call);
        }
      }
    }
  }

  void JoinViews(const std::vector<Node*>& nodes) {
    for (const Node* node : nodes) {
      if (!node->op.is_view()) continue;
      if (IsPlanned(node->inputs[0]) && IsPlanned(node->outputs[0])) {
        Join(*node->outputs[0], *node->inputs[0]);
      }
    }
  }

  // Visits the values that have parts, in the order of the schedule.
  void JoinParts(const std::vector<Node*>& nodes, Sharing sharing) {
    std::vector<const Value*> wholes;
    std::map<const Value*, std::vector<SharedPart>> parts;
    for (const Node* node : nodes) {
      for (const SharedPart& shared : SharedParts(*node)) {
        if (!IsPlanned(shared.part) || !IsPlanned(shared.whole)) continue;
        if (!parts.contains(shared.whole)) wholes.push_back(shared.whole);
        parts[shared.whole].push_back(shared);
      }
    }
    for (const Value* whole : wholes) JoinPartsOf(*whole, parts.at(whole), sharing);
  }

  void JoinPartsOf(const Value& whole, const std::vector<SharedPart>& parts, Sharing sharing) {
    const Spot spot = SpotOf(whole);
    std::set<int> groups = {spot.group};
    std::vector<SharedPart> separate;
    for (const SharedPart& shared : parts) {
      const bool is_new = groups.insert(SpotOf(*shared.part).group).second;
      const bool is_aligned = (spot.offset + shared.offset) % alignment_ == 0;
      if (is_new && is_aligned && FillsGroup(*shared.part)) separate.push_back(shared);
    }
    if (sharing == Sharing::kAll) {
      for (const SharedPart& shared : separate) Join(*shared.part, whole, shared.offset);
      return;
    }
    if (JoinUnlessItCosts(whole, separate)) return;
    for (const SharedPart& shared : separate) JoinUnlessItCosts(whole, {shared});
  }

  // The whole lives as long as any of its parts, so it may take more memory than separate parts.
  bool JoinUnlessItCosts(const Value& whole, const std::vector<SharedPart>& parts) {
    Group together = GroupOf(whole);
    int64_t cost_apart = together.Cost();
    for (const SharedPart& shared : parts) {
      cost_apart += GroupOf(*shared.part).Cost();
      together.Include(GroupOf(*shared.part));
    }
    if (together.Cost() > cost_apart) return false;
    for (const SharedPart& shared : parts) Join(*shared.part, whole, shared.offset);
    return true;
  }

  void JoinInPlace(const std::vector<Node*>& nodes) {
    for (int step = 0; step < static_cast<int>(nodes.size()); ++step) {
      const Node& node = *nodes[step];
      if (node.op.is_view() || node.outputs.empty() || !IsPlanned(node.outputs[0])) continue;
      const TensorDesc& out = node.outputs[0]->desc;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (!node.MayReplace(i)) continue;
        const Value* input = node.inputs[i];
        if (!IsPlanned(input) || GroupOf(*input).last != step) continue;
        const bool is_read_again = GroupOf(*input).first < LoopAround(nodes, step).first;
        if (node.loop != nullptr && is_read_again) continue;
        // A kernel that requests the input's memory handles its layout.
        const bool has_order =
            node.kernel.replaced_input == static_cast<int>(i) || input->desc.layout == out.layout;
        if (input->desc.count() != out.count() || input->desc.dtype != out.dtype || !has_order)
          continue;
        if (JoinInPlace(node, *input, *node.outputs[0])) break;
      }
    }
  }

  // `input` and all values that share its memory are read for the last time. Returns false if other
  // values would be overwritten.
  bool JoinInPlace(const Node& node, const Value& input, const Value& output) {
    const Spot spot = SpotOf(input);
    const auto overlaps_elsewhere = [&](const Value* other) {
      if (!IsPlanned(other)) return false;
      const Spot at = SpotOf(*other);
      const int64_t bytes = Bytes(*other);
      return at.group == spot.group && at.offset < spot.offset + Bytes(input) &&
             spot.offset < at.offset + bytes && !(at == spot && bytes == Bytes(input));
    };
    if (std::ranges::any_of(node.inputs, overlaps_elsewhere)) return false;
    if (FillsGroup(output)) return JoinUnlessItCosts(input, {{&output, &input, 0}});
    return FillsGroup(input) && JoinUnlessItCosts(output, {{&input, &output, 0}});
  }

  void Place(Graph& graph) {
    std::vector<Group*> order;
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (spots_[i].group == static_cast<int>(i) && groups_[i].last >= 0)
        order.push_back(&groups_[i]);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const Group* a, const Group* b) { return a->bytes > b->bytes; });
    graph.arena_bytes = 0;
    const auto shares = [&](const Group* group) {
      return !graph.options.keep_all || group->is_scratch;
    };
    for (Group* group : order) {
      if (shares(group)) continue;
      group->offset = graph.arena_bytes;
      graph.arena_bytes += WholeLines(group->bytes);
    }
    const int64_t begin = graph.arena_bytes;
    std::vector<Group*> placed;  // ordered by offset
    for (Group* group : order) {
      if (!shares(group)) continue;
      group->offset = FirstFit(placed, *group, begin);
      placed.insert(
          std::upper_bound(placed.begin(), placed.end(), group,
                           [](const Group* a, const Group* b) { return a->offset < b->offset; }),
          group);
      graph.arena_bytes = std::max(graph.arena_bytes, group->offset + WholeLines(group->bytes));
    }
    for (Value& value : graph.values()) {
      const Value& placed = *value.root();
      value.arena_offset = IsPlanned(&placed) && GroupOf(placed).last >= 0
                               ? GroupOf(placed).offset + SpotOf(placed).offset
                               : -1;
    }
  }

  // The lowest offset from `begin` on at which `group` overlaps no placed group with an overlapping
  // lifetime.
  static int64_t FirstFit(const std::vector<Group*>& placed, const Group& group, int64_t begin) {
    int64_t offset = begin;
    for (const Group* other : placed) {
      const bool is_concurrent = other->first <= group.last && group.first <= other->last;
      if (!is_concurrent) continue;
      if (other->offset >= offset + WholeLines(group.bytes)) break;
      offset = std::max(offset, other->offset + WholeLines(other->bytes));
    }
    return offset;
  }

  std::vector<Group> groups_;
  std::vector<Spot> spots_;  // by value; the head of a group refers to itself
  int64_t alignment_ = 1;
};

std::unique_ptr<Pass> MakePlanMemory() {
  return std::make_unique<PlanMemory>();
}

}  // namespace caffe::passes
