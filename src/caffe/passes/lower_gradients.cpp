#include "caffe/graph/layer_place.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe {

// After this pass the nodes of backward follow those of forward, in reverse order of the prototxt.
// A blob that is read several times gets the sum of its readers' gradients, as part of its first
// reader's backward. A caller who sets the blob's diff and starts at the layer that wrote the blob
// therefore starts from the diff that was set. It follows mark-gradients, so that it emits only
// gradients that are needed, and fake-quantize, so that gradients are those of the rounded values.
class GradientLowering final : public Pass {
 public:
  std::string_view name() const override { return "lower-gradients"; }

  void Run(Graph& graph) override {
    if (!graph.options.with_backward) return;
    contributions_.clear();
    arrived_.clear();
    first_readers_.clear();
    for (int i = 0; i < NumCalls(graph); ++i) {
      for (const Value* bottom : graph.calls[i].bottoms) first_readers_.emplace(bottom, i);
    }
    for (int i = NumCalls(graph) - 1; i >= 0; --i) {
      LowerBackward(graph, i);
      AddUpBottoms(graph, i);
    }
    if (graph.options.keep_all) KeepGradients(graph);
  }

 private:
  static int NumCalls(const Graph& graph) { return static_cast<int>(graph.calls.size()); }

  void LowerBackward(Graph& graph, int index) {
    LayerCall& call = graph.calls[index];
    const bool is_input = call.layer->traits().is_input;
    bool any_gradient = false;
    for (size_t i = 0; i < call.tops.size(); ++i) {
      Value* gradient = TopGradient(graph, index, static_cast<int>(i));
      if (gradient == nullptr) continue;
      any_gradient = true;
      graph.gradients[call.tops[i]] = gradient;
      const std::string& blob = call.tops[i]->name;
      if (graph.first_versions.at(blob) != call.tops[i]) continue;
      graph.blob_grads[blob] = gradient;
      gradient->must_be_plain = graph.external_diffs.count(blob) > 0;
    }
    if (is_input || !call.needs_backward || (!any_gradient && !call.tops.empty())) return;
    for (Value* top : call.tops) {
      if (graph.gradients.count(top) == 0) {
        graph.gradients[top] = &EmitGradient(graph, index, *top, ops::Fill{0});
      }
    }
    GraphBuilder builder(graph, index, /*is_backward=*/true);
    CallLayer(call.layer->param(), [&] { call.layer->EmitBackward(builder); });
    for (size_t i = 0; i < builder.bottom_diffs_.size(); ++i) {
      if (builder.bottom_diffs_[i] == nullptr) continue;
      contributions_[call.bottoms[i]].push_back(
          &BeforeRounding(graph, index, static_cast<int>(i), *builder.bottom_diffs_[i]));
    }
  }

  // Turns the gradient of a rounded bottom, which the layer reads, into that of the bottom itself.
  static Value& BeforeRounding(Graph& graph, int index, int bottom, Value& gradient) {
    const LayerCall& call = graph.calls[index];
    const auto rounded = call.rounded_bottoms.find(bottom);
    if (rounded == call.rounded_bottoms.end()) return gradient;
    Value* x = call.bottoms[bottom];
    Value& of_bottom = NewGradient(graph, *x);
    GraphBuilder(graph, index, /*is_backward=*/true)
        .Emit(rounded->second.gradient, {x, &gradient}, {&of_bottom});
    return of_bottom;
  }

  // The gradient at a top: the sum over its readers. A blob without readers has the caller's diff
  // in a keep-all net, else its loss weight.
  Value* TopGradient(Graph& graph, int index, int top_index) {
    LayerCall& call = graph.calls[index];
    Value* top = call.tops[top_index];
    const auto arrived = arrived_.find(top);
    if (arrived != arrived_.end()) return arrived->second;
    if (!call.needs_backward) return nullptr;
    const bool is_output = first_readers_.count(top) == 0;
    if (graph.options.keep_all && (is_output || graph.options.force_backward)) {
      return &ExternalGradient(graph, index, *top);
    }
    const float loss_weight = call.loss_weights[top_index];
    if (loss_weight == 0 || !is_output) return nullptr;
    return &EmitGradient(graph, index, *top, ops::LossWeight{loss_weight});
  }

  // Sums the gradients of the bottoms for which this call is the first reader: all their readers
  // have contributed by now.
  void AddUpBottoms(Graph& graph, int reader) {
    for (Value* bottom : graph.calls[reader].bottoms) {
      if (first_readers_.at(bottom) != reader || arrived_.count(bottom) > 0) continue;
      std::vector<Value*> parts = contributions_[bottom];
      const LayerCall& writer = graph.calls[bottom->layer];
      for (size_t i = 0; i < writer.tops.size(); ++i) {
        const float loss_weight = writer.loss_weights[i];
        if (writer.tops[i] != bottom || loss_weight == 0 || !writer.needs_backward) continue;
        parts.push_back(&EmitGradient(graph, reader, *bottom, ops::LossWeight{loss_weight}));
      }
      if (parts.empty()) continue;
      Value*& sum = arrived_[bottom];
      sum = parts[0];
      if (parts.size() == 1) continue;
      sum = &NewGradient(graph, *bottom);
      GraphBuilder(graph, reader, /*is_backward=*/true).Emit(ops::EltwiseSum{}, parts, {sum});
    }
  }

  static Value& NewGradient(Graph& graph, const Value& of) {
    Value& gradient =
        graph.NewValue(of.name + ".diff", of.desc.shape, of.desc.dtype, ValueKind::kActivation);
    gradient.layer = of.layer;
    gradient.gradient_of = &of;
    gradient.at_least_float = of.at_least_float;
    return gradient;
  }

  static Value& EmitGradient(Graph& graph, int index, const Value& of, Op op) {
    Value& gradient = NewGradient(graph, of);
    GraphBuilder(graph, index, /*is_backward=*/true).Emit(std::move(op), {}, {&gradient});
    return gradient;
  }

  static Value& ExternalGradient(Graph& graph, int index, const Value& top) {
    Value& external = NewGradient(graph, top);
    external.kind = ValueKind::kExternal;
    graph.external_diffs[top.name] = &external;
    if (graph.first_versions.at(top.name) == &top) return external;
    // The blob's diff will be overwritten with the gradient of its first version, so copy it first.
    Value& copy = NewGradient(graph, top);
    GraphBuilder(graph, index, /*is_backward=*/true).Emit(ops::View{}, {&external}, {&copy});
    return copy;
  }

  static void KeepGradients(Graph& graph) {
    for (const LayerCall& call : graph.calls) {
      for (const Value* top : call.tops) {
        const auto gradient = graph.gradients.find(top);
        if (gradient != graph.gradients.end()) gradient->second->is_kept = true;
      }
    }
  }

  std::map<const Value*, std::vector<Value*>> contributions_;
  std::map<const Value*, Value*> arrived_;  // the sums
  std::map<const Value*, int> first_readers_;
};

std::unique_ptr<Pass> passes::MakeLowerGradients() {
  return std::make_unique<GradientLowering>();
}

}  // namespace caffe
