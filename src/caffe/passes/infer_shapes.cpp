#include <algorithm>

#include "caffe/graph/layer_place.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {
namespace {

void CheckCount(const char* what, int count, int exact, int least, int most) {
  const std::string repair = StrCat("; name each by ", what, ": \"...\"");
  Require(exact < 0 || count == exact, "takes ", exact, " ", what, "(s) but has ", count, repair);
  Require(least < 0 || count >= least, "takes at least ", least, " ", what, "(s) but has ", count,
          repair);
  Require(most < 0 || count <= most, "takes at most ", most, " ", what, "(s) but has ", count,
          "; leave out the others");
}

}  // namespace

// After this pass every layer call's tops have shapes, and its parameters exist as values; shared
// parameters refer to their owner. It is the first pass: it reads only bottoms and options.
class InferShapes final : public Pass {
 public:
  std::string_view name() const override { return "infer-shapes"; }

  void Run(Graph& graph) override {
    owners_.clear();
    layers_of_name_.clear();
    for (const LayerCall& call : graph.calls) ++layers_of_name_[call.layer->name()];
    for (size_t i = 0; i < graph.calls.size(); ++i) {
      const Layer& layer = *graph.calls[i].layer;
      CallLayer(layer.param(), [&] { InferCall(graph, static_cast<int>(i)); });
    }
  }

 private:
  void InferCall(Graph& graph, int index) {
    LayerCall& call = graph.calls[index];
    const LayerTraits traits = call.layer->traits();
    const int num_bottoms = static_cast<int>(call.bottoms.size());
    const int num_tops = static_cast<int>(call.tops.size());
    CheckCount("bottom", num_bottoms, traits.num_bottoms, traits.min_bottoms, traits.max_bottoms);
    CheckCount("top", num_tops, traits.num_tops, traits.min_tops, traits.max_tops);
    Require(!traits.equal_bottoms_and_tops || num_bottoms == num_tops, "has ", num_bottoms,
            " bottom(s) and ", num_tops, " top(s); it needs as many of one as of the other");
    std::vector<Shape> bottoms;
    for (const Value* bottom : call.bottoms) bottoms.push_back(bottom->desc.shape);
    std::vector<Shape> tops = AskForTops(graph, call, bottoms);
    const auto found = graph.options.found_top_shapes.find(index);
    if (found != graph.options.found_top_shapes.end()) tops = found->second;
    Require(tops.size() == call.tops.size(), "its InferTopShapes gives ", tops.size(),
            " shapes for ", num_tops, " top(s)");
    CheckInPlace(call.layer->param(), bottoms, tops);
    for (int i = 0; i < num_tops; ++i) {
      const auto reshaped = graph.options.input_shapes.find(call.tops[i]->name);
      const bool is_reshaped = traits.is_input && reshaped != graph.options.input_shapes.end();
      call.tops[i]->desc.shape = is_reshaped ? reshaped->second : tops[i];
    }
    DeclareParams(graph, index, bottoms);
  }

  // Until the caller reshapes it, an input without a shape is a scalar, which few layers accept.
  static std::vector<Shape> AskForTops(const Graph& graph, const LayerCall& call,
                                       const std::vector<Shape>& bottoms) {
    try {
      return call.layer->InferTopShapes(bottoms);
    } catch (const InvalidArgument& error) {
      for (const Value* bottom : call.bottoms) {
        Require(bottom->desc.shape.num_axes() > 0 || !IsInput(graph, bottom), "its bottom '",
                bottom->name,
                "' is an input of the net and has no shape; give input_shape { dim: "
                "... }, or input_param { shape { dim: ... } } in an Input layer (",
                error.what(), ")");
      }
      throw;
    }
  }

  static bool IsInput(const Graph& graph, const Value* value) {
    return std::any_of(graph.calls.begin(), graph.calls.end(), [&](const LayerCall& call) {
      return call.layer->traits().is_input &&
             std::find(call.tops.begin(), call.tops.end(), value) != call.tops.end();
    });
  }

  // A blob has one shape, so a top may have a bottom's name only if it has the same shape.
  static void CheckInPlace(const LayerParameter& param, const std::vector<Shape>& bottoms,
                           const std::vector<Shape>& tops) {
    for (int i = 0; i < param.top_size(); ++i) {
      for (int k = 0; k < param.bottom_size(); ++k) {
        Require(param.top(i) != param.bottom(k) || tops[i] == bottoms[k], "changes the shape of '",
                param.top(i), "' from ", bottoms[k], " to ", tops[i],
                " and cannot run in place; give top another name");
      }
    }
  }

  void DeclareParams(Graph& graph, int index, const std::vector<Shape>& bottoms) {
    LayerCall& call = graph.calls[index];
    const LayerParameter& param = call.layer->param();
    call.params = call.layer->Params(bottoms);
    const int num_params = static_cast<int>(call.params.size());
    Require(
        num_params == 0 || layers_of_name_.at(param.name()) == 1,
        "has weights and a name that another layer has too; names identify weights: rename one");
    Require(param.param_size() <= num_params, "has ", param.param_size(),
            " param entries but only ", num_params, " parameter blob(s)");
    for (int i = 0; i < num_params; ++i) {
      const std::string name = StrCat(call.layer->name(), ".", i);
      const Shape& shape = call.params[i].shape;
      Value& value = graph.NewValue(name, shape, DType::kFloat, ValueKind::kParam);
      Value& grad = graph.NewValue(name + ".diff", shape, DType::kFloat, ValueKind::kParamGrad);
      value.layer = grad.layer = index;
      grad.gradient_of = &value;
      call.param_values.push_back(&value);
      call.param_grads.push_back(&grad);
      if (i < param.param_size() && !param.param(i).name().empty()) {
        Share(param.param(i), value, grad);
      }
    }
  }

  // Parameters with the same name share the memory of the first one.
  void Share(const ParamSpec& spec, Value& value, Value& grad) {
    const auto [found, is_new] = owners_.emplace(spec.name(), std::pair(&value, &grad));
    if (is_new) return;
    const auto [owner, owner_grad] = found->second;
    const bool permissive = spec.share_mode() == ParamSpec::PERMISSIVE;
    Require(permissive ? owner->desc.count() == value.desc.count()
                       : owner->desc.shape == value.desc.shape,
            "shares parameter '", spec.name(), "' of shape ", owner->desc.shape, " (", owner->name,
            ") with one of shape ", value.desc.shape,
            permissive ? "; counts must agree" : "; shapes must agree (or share_mode: PERMISSIVE)");
    value.owner = owner;
    grad.owner = owner_grad;
  }

  std::map<std::string, int> layers_of_name_;
  std::map<std::string, std::pair<Value*, Value*>> owners_;
};

std::unique_ptr<Pass> MakeInferShapes() {
  return std::make_unique<InferShapes>();
}

}  // namespace caffe::passes
