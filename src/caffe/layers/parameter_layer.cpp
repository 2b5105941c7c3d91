#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

// A learned blob as a top. It is initialised with zeros unless weights are loaded.
class ParameterLayer final : public Layer {
 public:
  explicit ParameterLayer(const LayerParameter& param) : Layer(param) {
    Require(param.parameter_param().has_shape(), "parameter_param { shape } is missing");
  }

  LayerTraits traits() const override { return {.num_bottoms = 0, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>&) const override {
    const auto& dims = param().parameter_param().shape().dim();
    return {Shape(std::vector<int64_t>(dims.begin(), dims.end()))};
  }

  std::vector<ParamDeclaration> Params(const std::vector<Shape>& bottoms) const override {
    return {{InferTopShapes(bottoms)[0], FillerParameter()}};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::View{}, {graph.param(0)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    const ops::BroadcastAxes all{.axis = 0, .num_axes = graph.shape(graph.top(0)).num_axes()};
    graph.Emit(ops::SumToAxes{all}, {graph.top_diff(0)}, {graph.param_diff(0)});
  }
};

REGISTER_LAYER_CLASS(Parameter);

}  // namespace
}  // namespace caffe
