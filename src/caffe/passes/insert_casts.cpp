#include <tuple>

#include "caffe/ops/convert.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {

// After this pass every node reads its operands in the dtype that it requested and writes its
// results in the dtype in which they are stored. Conversions are ordinary Cast nodes, so they are
// visible in the plan, timed by the profiler and shared: one Cast per (value, dtype), however many
// readers; in a keep-all plan one per reading layer, because the caller may change the blob and run
// from there.
class InsertCasts final : public Pass {
 public:
  std::string_view name() const override { return "insert-casts"; }
  Established establishes() const override { return {.types = true}; }

  void Run(Graph& graph) override {
    casts_.clear();
    for (Node* node : graph.ScheduledNodes()) {
      for (Operand& input : node->inputs) {
        if (input != nullptr && input->desc.dtype != input.dtype)
          input.value = FindOrInsertCast(graph, *node, *input.value, input.dtype);
      }
      for (Result& output : node->outputs) {
        if (output != nullptr && output->desc.dtype != output.dtype)
          output.value = InsertCastAfter(graph, *node, *output.value, output.dtype);
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
    const int layer = graph.options.keep_all ? reader.layers.front() : -1;
    Value*& cast = casts_[{from.id, to, layer}];
    if (cast == nullptr) {
      cast = &Converted(graph, from, to);
      graph.InsertBefore(reader, ops::Cast{}, {&from}, {cast});
    }
    return cast;
  }

  Value* InsertCastAfter(Graph& graph, const Node& writer, Value& to, DType made) {
    Value& from = Converted(graph, to, made);
    graph.InsertAfter(writer, ops::Cast{}, {&from}, {&to});
    // Readers that request the node's own type need no second conversion.
    if (!graph.options.keep_all) casts_[{to.id, made, -1}] = &from;
    return &from;
  }

  std::map<std::tuple<int, DType, int>, Value*> casts_;
};

std::unique_ptr<Pass> MakeInsertCasts() {
  return std::make_unique<InsertCasts>();
}

}  // namespace caffe::passes
