#include <algorithm>
#include <limits>

#include "caffe/ops/convert.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {
namespace {

constexpr int64_t kAlignment = 64;  // a cache line, and the widest vector

int64_t Aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

// After this pass every activation without memory of its own has a place in one arena, such that
// values alive at the same time do not overlap. Values joined by a view, or by an in-place op at
// its input's last use, share a place. Places are found by first fit, largest first; in a
// keep-all plan nothing shares, because any blob may be read between any two steps. It is the
// last pass: the schedule is final.
class PlanMemory final : public Pass {
 public:
  std::string_view name() const override { return "plan-memory"; }
  Established establishes() const override { return {.memory = true}; }

  void Run(Graph& graph) override {
    const std::vector<Node*> nodes = graph.ScheduledNodes();
    groups_.assign(graph.values().size(), {});
    parent_.resize(graph.values().size());
    for (size_t i = 0; i < parent_.size(); ++i) parent_[i] = static_cast<int>(i);
    FindLifetimes(nodes);
    KeepWhatHostCallsMayNeedAgain(nodes);
    if (!graph.options.keep_all) {
      JoinViews(nodes);
      JoinInPlace(nodes);
    }
    Place(graph);
  }

 private:
  // A set of values that share one place.
  struct Group {
    int first = std::numeric_limits<int>::max();  // step that writes it
    int last = -1;                                // last step that touches it
    int64_t bytes = 0;
    int64_t offset = 0;
  };

  static bool IsPlanned(const Value* value) {
    return value != nullptr && value->kind == ValueKind::kActivation && !value->is_kept;
  }

  int Find(int id) {
    while (parent_[id] != id) id = parent_[id] = parent_[parent_[id]];
    return id;
  }

  Group& GroupOf(const Value& value) { return groups_[Find(value.id)]; }

  void Join(const Value& a, const Value& b) {
    const int into = Find(a.id), from = Find(b.id);
    if (into == from) return;
    groups_[into].first = std::min(groups_[into].first, groups_[from].first);
    groups_[into].last = std::max(groups_[into].last, groups_[from].last);
    groups_[into].bytes = std::max(groups_[into].bytes, groups_[from].bytes);
    parent_[from] = into;
  }

  void FindLifetimes(const std::vector<Node*>& nodes) {
    for (int step = 0; step < static_cast<int>(nodes.size()); ++step) {
      const auto touch = [&](const Value* value) {
        if (!IsPlanned(value)) return;
        Group& group = groups_[value->id];
        group.first = std::min(group.first, step);
        group.last = std::max(group.last, step);
        group.bytes = Aligned(static_cast<int64_t>(value->desc.bytes()));
      };
      for (const Value* input : nodes[step]->inputs) touch(input);
      for (const Value* output : nodes[step]->outputs) touch(output);
    }
  }

  // A host call may find that its results have another shape. Then the layer starts anew by another
  // plan, so what its earlier steps (conversions) have read must still be there.
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
        Join(*node->inputs[0], *node->outputs[0]);
      }
    }
  }

  void JoinInPlace(const std::vector<Node*>& nodes) {
    for (int step = 0; step < static_cast<int>(nodes.size()); ++step) {
      const Node& node = *nodes[step];
      if (!node.op.in_place() || node.op.is_view() || !IsPlanned(node.outputs[0])) continue;
      const TensorDesc& out = node.outputs[0]->desc;
      for (const Value* input : node.inputs) {
        if (!IsPlanned(input) || GroupOf(*input).last != step) continue;
        if (input->desc.count() != out.count() || input->desc.dtype != out.dtype ||
            input->desc.layout != out.layout) {
          continue;
        }
        Join(*input, *node.outputs[0]);
        break;
      }
    }
  }

  void Place(Graph& graph) {
    std::vector<Group*> order;
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (parent_[i] == static_cast<int>(i) && groups_[i].last >= 0) order.push_back(&groups_[i]);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const Group* a, const Group* b) { return a->bytes > b->bytes; });
    graph.arena_bytes = 0;
    std::vector<Group*> placed;  // by offset
    for (Group* group : order) {
      if (graph.options.keep_all) {
        group->offset = graph.arena_bytes;
      } else {
        group->offset = FirstFit(placed, *group);
        placed.insert(
            std::upper_bound(placed.begin(), placed.end(), group,
                             [](const Group* a, const Group* b) { return a->offset < b->offset; }),
            group);
      }
      graph.arena_bytes = std::max(graph.arena_bytes, group->offset + group->bytes);
    }
    for (Value& value : graph.values()) {
      value.arena_offset =
          IsPlanned(&value) && GroupOf(value).last >= 0 ? GroupOf(value).offset : -1;
    }
  }

  // The lowest offset at which `group` meets no placed group that lives at the same time.
  static int64_t FirstFit(const std::vector<Group*>& placed, const Group& group) {
    int64_t offset = 0;
    for (const Group* other : placed) {
      const bool is_concurrent = other->first <= group.last && group.first <= other->last;
      if (!is_concurrent) continue;
      if (other->offset >= offset + group.bytes) break;
      offset = std::max(offset, other->offset + other->bytes);
    }
    return offset;
  }

  std::vector<Group> groups_;
  std::vector<int> parent_;
};

std::unique_ptr<Pass> MakePlanMemory() {
  return std::make_unique<PlanMemory>();
}

}  // namespace caffe::passes
