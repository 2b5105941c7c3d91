#include <algorithm>
#include <map>
#include <tuple>

#include "caffe/ops/convert.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {
namespace {

bool IsImage(const Value& value) {
  return value.desc.shape.num_axes() == 4;
}

}  // namespace

// After this pass 4-D values are channels-last wherever a convolution, pooling or normalization
// runs, pointwise ops follow their inputs, and the operands of every node have one layout.
// Conversions are Reorder nodes: one per value, however many readers; in a keep-all plan one per
// reading layer, because the caller may change the blob and run from there. Values that share
// memory with the caller (inputs, parameters) stay plain. It follows insert-casts, so that a value
// is reordered in the type in which it is read.
class AssignLayouts final : public Pass {
 public:
  std::string_view name() const override { return "assign-layouts"; }
  Established establishes() const override { return {.layouts = true}; }

  void Run(Graph& graph) override {
    reorders_.clear();
    readers_ = Readers(graph);
    for (Node* node : graph.ScheduledNodes()) Assign(graph, *node);
  }

 private:
  void Assign(Graph& graph, Node& node) {
    const LayoutRule rule = node.op.layout_rule();
    const Layout layout = Choose(node, rule);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      Value* input = node.inputs[i];
      if (input == nullptr || !IsImage(*input)) continue;
      const Layout wanted = rule.inputs.contains(i) ? layout : Layout::kPlain;
      if (input->desc.layout != wanted)
        node.inputs[i].value = FindOrInsertReorder(graph, node, *input, wanted);
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      Value* output = node.outputs[i];
      if (output == nullptr || !IsImage(*output) || !rule.outputs.contains(i)) continue;
      if (output->kind != ValueKind::kActivation) continue;
      if (output->must_be_plain && layout != Layout::kPlain) {
        node.outputs[i].value = InsertReorderAfter(graph, node, *output, layout);
      } else {
        output->desc.layout = layout;
      }
    }
  }

  Layout Choose(const Node& node, const LayoutRule& rule) const {
    bool any_image = false, any_channels_last = false;
    const auto look = [&](const Value* value, bool is_input) {
      if (value == nullptr) return true;
      if (!IsImage(*value)) return false;
      any_image = true;
      if (is_input) {
        any_channels_last |= value->desc.layout == Layout::kChannelsLast;
      }
      return true;
    };
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (rule.inputs.contains(i) && !look(node.inputs[i], true)) return Layout::kPlain;
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (rule.outputs.contains(i) && !look(node.outputs[i], false)) return Layout::kPlain;
    }
    if (!any_image) return Layout::kPlain;
    // A source that can write any layout uses the layout of its readers.
    any_channels_last |= node.inputs.empty() && IsWantedChannelsLast(node);
    return rule.prefers_channels_last || any_channels_last ? Layout::kChannelsLast : Layout::kPlain;
  }

  bool IsWantedChannelsLast(const Node& node) const {
    const auto found = readers_.find(node.outputs[0]);
    if (found == readers_.end()) return false;
    return std::ranges::any_of(found->second, [](const Node* reader) {
      return reader->op.layout_rule().prefers_channels_last;
    });
  }

  Value* FindOrInsertReorder(Graph& graph, const Node& reader, Value& from, Layout to) {
    const int layer = graph.options.keep_all ? reader.layers.front() : -1;
    Value*& reordered = reorders_[{from.id, to, layer}];
    if (reordered == nullptr) {
      reordered = &InOtherLayout(graph, from, to);
      graph.InsertBefore(reader, ops::Reorder{}, {&from}, {reordered});
    }
    return reordered;
  }

  static Value* InsertReorderAfter(Graph& graph, const Node& writer, Value& to, Layout made) {
    Value& from = InOtherLayout(graph, to, made);
    graph.InsertAfter(writer, ops::Reorder{}, {&from}, {&to});
    return &from;
  }

  static Value& InOtherLayout(Graph& graph, const Value& value, Layout layout) {
    Value& other = graph.NewValue(StrCat(value.name, ":", Name(layout)), value.desc.shape,
                                  value.desc.dtype, ValueKind::kActivation);
    other.desc.layout = layout;
    other.desc.scale = value.desc.scale;
    other.layer = value.layer;
    other.at_least_float = value.at_least_float;
    return other;
  }

  std::map<std::tuple<int, Layout, int>, Value*> reorders_;
  std::map<const Value*, std::vector<Node*>> readers_;
};

std::unique_ptr<Pass> MakeAssignLayouts() {
  return std::make_unique<AssignLayouts>();
}

}  // namespace caffe::passes
