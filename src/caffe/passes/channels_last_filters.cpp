#include <algorithm>
#include <set>

#include "caffe/graph/filter_operand.hpp"
#include "caffe/graph/weight_copies.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {

// After this pass copies of filters that only convolutions of channels-last images read are
// channels-last, too, as vendors' engines require:
//
//   Cast(w) -> copy, Conv(x, copy)     -> Reorder(w) -> copy, Conv(x, copy)
//   Conv(x, w)                         -> Reorder(w) -> copy, Conv(x, copy)
//
// Without it, each convolution and each data gradient reorders its filter in a separate launch in
// each pass. A copy is recomputed when the weights change, and the update writes it along with
// them. It follows keep-weight-copies, without which a copy would not outlive the run.
class ChannelsLastFilters final : public Pass {
 public:
  std::string_view name() const override { return "channels-last-filters"; }
  bool is_optional() const override { return true; }

  void Run(Graph& graph) override {
    if (graph.options.device->kind() != DeviceKind::kCuda ||
        graph.options.is_disabled("keep-weight-copies")) {
      return;
    }
    FindConstants(graph);
    const auto readers = Readers(graph);
    for (Value* filter : Filters(graph)) {
      if (std::ranges::all_of(readers.at(filter),
                              [&](const Node* reader) { return ReadsFilter(*reader, filter); })) {
        PutChannelsLast(graph, *filter, readers.at(filter));
      }
    }
  }

 private:
  // Finds parameters that no run writes, and copies of parameters.
  void FindConstants(const Graph& graph) {
    makers_.clear();
    written_ = WrittenParams(graph);
    for (const WeightCopy& copy : WeightCopies(graph)) {
      for (const Value* result : copy.results) makers_[result] = copy.node;
    }
  }

  bool Lasts(Value& value) const {
    return makers_.count(&value) > 0 ||
           (value.kind == ValueKind::kParam && written_.count(value.root()) == 0);
  }

  // Filters for which the layouts differ, without duplicates.
  std::vector<Value*> Filters(const Graph& graph) const {
    std::vector<Value*> filters;
    std::set<const Value*> seen;
    for (const Node* node : graph.ScheduledNodes()) {
      const int operand = FilterOfChannelsLastImages(*node);
      if (operand < 0) continue;
      Value* const filter = node->inputs[static_cast<size_t>(operand)].value;
      const TensorDesc& desc = filter->desc;
      if (desc.shape.num_axes() != 4 || desc.layout != Layout::kPlain || !Lasts(*filter)) continue;
      if (desc.shape[1] == 1 || desc.shape.count(2) == 1 || !seen.insert(filter).second) continue;
      filters.push_back(filter);
    }
    return filters;
  }

  static bool ReadsFilter(const Node& node, const Value* filter) {
    const int operand = FilterOfChannelsLastImages(node);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i].value == filter && static_cast<int>(i) != operand) return false;
    }
    return true;
  }

  void PutChannelsLast(Graph& graph, Value& filter, const std::vector<Node*>& readers) const {
    const auto maker = makers_.find(&filter);
    if (maker != makers_.end() && maker->second->op.As<ops::Cast>() != nullptr) {
      maker->second->op = ops::Reorder{};  // a Reorder changes the type, too
      filter.desc.layout = Layout::kChannelsLast;
      return;
    }
    Value& copy = graph.NewValue(StrCat(filter.name, ":", Name(Layout::kChannelsLast)),
                                 filter.desc.shape, filter.desc.dtype, ValueKind::kState);
    copy.desc.layout = Layout::kChannelsLast;
    copy.layer = filter.layer;
    graph.InsertBefore(*readers.front(), ops::Reorder{}, {&filter}, {&copy});
    for (Node* reader : readers)
      reader->inputs[static_cast<size_t>(FilterOfChannelsLastImages(*reader))].value = &copy;
  }

  std::map<const Value*, Node*> makers_;
  std::set<const Value*> written_;
};

std::unique_ptr<Pass> MakeChannelsLastFilters() {
  return std::make_unique<ChannelsLastFilters>();
}

}  // namespace caffe::passes
