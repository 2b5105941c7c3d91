#include "caffe/ops/convert.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {

// After this pass every node reads its operands in the dtype it asked for and makes its results in
// the dtype they are stored in. Conversions are ordinary Cast nodes, so they are visible in the
// plan, timed by the profiler and shared: one Cast per (value, dtype), however many readers.
class InsertCasts final : public Pass {
 public:
  std::string_view name() const override { return "insert-casts"; }
  Established establishes() const override { return {.types = true}; }

  void Run(Graph& graph) override {
    casts_.clear();
    for (Node* node : graph.ScheduledNodes()) {
      for (size_t i = 0; i < node->inputs.size(); ++i) {
        Value* input = node->inputs[i];
        if (input != nullptr && input->desc.dtype != node->wanted[i]) {
          node->inputs[i] = FindOrInsertCast(graph, *node, *input, node->wanted[i]);
        }
      }
      for (size_t i = 0; i < node->outputs.size(); ++i) {
        Value* output = node->outputs[i];
        if (output != nullptr && output->desc.dtype != node->made[i]) {
          node->outputs[i] = InsertCastAfter(graph, *node, *output, node->made[i]);
        }
      }
    }
  }

 private:
  static Value& Converted(Graph& graph, const Value& from, DType to) {
    Value& value = graph.NewValue(StrCat(from.name, ":", Name(to)), from.desc.shape, to,
                                  ValueKind::kActivation);
    value.layer = from.layer;
    return value;
  }

  Value* FindOrInsertCast(Graph& graph, const Node& reader, Value& from, DType to) {
    Value*& cast = casts_[{from.id, to}];
    if (cast == nullptr) {
      cast = &Converted(graph, from, to);
      Node& node = graph.InsertBefore(reader, ops::Cast{}, {&from}, {cast});
      node.wanted = {from.desc.dtype};
      node.made = {to};
    }
    return cast;
  }

  Value* InsertCastAfter(Graph& graph, const Node& writer, Value& to, DType made) {
    Value& from = Converted(graph, to, made);
    Node& node = graph.InsertAfter(writer, ops::Cast{}, {&from}, {&to});
    node.wanted = {made};
    node.made = {to.desc.dtype};
    // Readers that want the made type again need no second conversion.
    casts_[{to.id, made}] = &from;
    return &from;
  }

  std::map<std::pair<int, DType>, Value*> casts_;
};

std::unique_ptr<Pass> MakeInsertCasts() {
  return std::make_unique<InsertCasts>();
}

}  // namespace caffe::passes
