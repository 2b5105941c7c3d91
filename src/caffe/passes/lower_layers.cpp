#include <set>

#include "caffe/graph/layer_place.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {

// After this pass the graph consists of the nodes of forward, in prototxt order, and tops that the
// caller reads are marked. It follows mark-gradients, because layers emit more nodes if they learn.
class LowerLayers final : public Pass {
 public:
  std::string_view name() const override { return "lower-layers"; }

  void Run(Graph& graph) override {
    for (int i = 0; i < static_cast<int>(graph.calls.size()); ++i) LowerForward(graph, i);
    CheckTopsAreMade(graph);
    KeepTops(graph);
  }

 private:
  static void LowerForward(Graph& graph, int index) {
    LayerCall& call = graph.calls[index];
    if (call.layer->traits().is_input) {
      LowerInput(graph, index);
      return;
    }
    GraphBuilder builder(graph, index, /*is_backward=*/false);
    CallLayer(call.layer->param(), [&] { call.layer->EmitForward(builder); });
  }

  static void CheckTopsAreMade(const Graph& graph) {
    std::set<const Value*> made;
    for (const Node* node : graph.ScheduledNodes()) {
      for (const Result& output : node->outputs) made.insert(output.value);
    }
    for (const LayerCall& call : graph.calls) {
      if (call.layer->traits().is_input) continue;
      for (const Value* top : call.tops) {
        CallLayer(call.layer->param(), [&] {
          Require(made.contains(top), "emits no operation that makes top '", top->name,
                  "'; its EmitForward has to");
        });
      }
    }
  }

  // An input blob's memory belongs to the user. If an in-place layer overwrites the blob, the net
  // computes on a copy, so that backward still finds the input.
  static void LowerInput(Graph& graph, int index) {
    for (Value* top : graph.calls[index].tops) {
      const std::string& blob = top->name;
      if (graph.blobs.at(blob) == top) {
        top->kind = ValueKind::kExternal;
        graph.external_data[blob] = top;
        continue;
      }
      Value& external =
          graph.NewValue(blob + ".input", top->desc.shape, top->desc.dtype, ValueKind::kExternal);
      external.layer = index;
      external.at_least_float = true;
      graph.external_data[blob] = &external;
      graph.blobs.at(blob)->must_be_plain = true;
      GraphBuilder(graph, index, /*is_backward=*/false).Emit(ops::View{}, {&external}, {top});
    }
  }

  static void KeepTops(const Graph& graph) {
    std::set<const Value*> read;
    for (const LayerCall& call : graph.calls) read.insert(call.bottoms.begin(), call.bottoms.end());
    for (const LayerCall& call : graph.calls) {
      for (size_t i = 0; i < call.tops.size(); ++i) {
        // A keep-all plan also keeps versions that in-place layers overwrite, because partial runs
        // show them.
        call.tops[i]->is_kept =
            graph.options.keep_all || read.count(call.tops[i]) == 0 || call.loss_weights[i] != 0;
      }
    }
  }
};

std::unique_ptr<Pass> MakeLowerLayers() {
  return std::make_unique<LowerLayers>();
}

}  // namespace caffe::passes
