#include "caffe/net/build_graph.hpp"

#include <algorithm>

#include "caffe/core/nearest_name.hpp"
#include "caffe/error.hpp"
#include "caffe/graph/layer_place.hpp"

namespace caffe {
namespace {

// Fan-out needs no Split layers here, because a value may have several readers.
class GraphWiring {
 public:
  GraphWiring(const std::vector<std::shared_ptr<Layer>>& layers, Graph* graph)
      : layers_(layers), graph_(*graph) {}

  void Add(const std::shared_ptr<Layer>& layer) {
    const LayerParameter& param = layer->param();
    LayerCall call;
    call.layer = layer;
    for (const std::string& bottom : param.bottom()) call.bottoms.push_back(Find(param, bottom));
    std::vector<std::string> tops(param.top().begin(), param.top().end());
    const LayerTraits traits = layer->traits();
    WithContext(PlaceOf(param), [&] {
      call.types = ResolveTypes(param, traits.is_data, graph_.options.precision);
    });
    if (traits.is_loss && tops.empty()) tops.push_back("(automatic)");
    for (size_t i = 0; i < tops.size(); ++i) {
      call.tops.push_back(Define(param, tops[i], i));
      call.loss_weights.push_back(LossWeight(param, traits, i));
    }
    Require(
        param.loss_weight_size() == 0 || param.loss_weight_size() == static_cast<int>(tops.size()),
        "layer '", param.name(), "' has ", param.loss_weight_size(), " loss_weight entries for ",
        tops.size(), " top(s); give none or one each");
    graph_.calls.push_back(std::move(call));
  }

 private:
  static float LossWeight(const LayerParameter& param, const LayerTraits& traits, size_t top) {
    if (static_cast<int>(top) < param.loss_weight_size()) {
      return param.loss_weight(static_cast<int>(top));
    }
    return traits.is_loss && top == 0 && param.loss_weight_size() == 0 ? 1.0f : 0.0f;
  }

  Value* Find(const LayerParameter& param, const std::string& bottom) const {
    const auto found = graph_.blobs.find(bottom);
    if (found != graph_.blobs.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [name, value] : graph_.blobs) known.push_back(name);
    std::string hint = MakerBelow(bottom);
    const std::string near = hint.empty() ? NearestName(bottom, known) : "";
    if (!near.empty()) hint = "; did you mean '" + near + "'?";
    throw InvalidArgument(StrCat(PlaceOf(param), ": unknown bottom '", bottom,
                                 "'; no layer above it has such a top", hint));
  }

  // For a bottom that has no producer yet: the layers are in the wrong order, or form a loop.
  std::string MakerBelow(const std::string& bottom) const {
    for (const std::shared_ptr<Layer>& layer : layers_) {
      const auto names = [&](const auto& blobs) {
        return std::find(blobs.begin(), blobs.end(), bottom) != blobs.end();
      };
      if (!names(layer->param().top()) || names(layer->param().bottom())) continue;
      return StrCat("; layer '", layer->name(), "', which makes it, has to come before this one");
    }
    return "";
  }

  Value* Define(const LayerParameter& param, const std::string& top, size_t index) {
    const bool is_in_place = static_cast<int>(index) < param.bottom_size() &&
                             param.bottom(static_cast<int>(index)) == top;
    const auto earlier = graph_.blobs.find(top);
    Require(is_in_place || earlier == graph_.blobs.end(), PlaceOf(param), ": top '", top,
            "' is already the top of another layer; give it a new name");
    Value& value = graph_.NewValue(top, Shape{}, DType::kFloat, ValueKind::kActivation);
    value.layer = static_cast<int>(graph_.calls.size());
    graph_.blobs[top] = &value;
    graph_.first_versions.emplace(top, &value);
    return &value;
  }

  const std::vector<std::shared_ptr<Layer>>& layers_;
  Graph& graph_;
};

}  // namespace

void BuildGraph(const std::vector<std::shared_ptr<Layer>>& layers, Graph* graph) {
  GraphWiring wiring(layers, graph);
  for (const std::shared_ptr<Layer>& layer : layers) wiring.Add(layer);
}

}  // namespace caffe
