#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/arrange.hpp"
#include "caffe/ops/broadcast.hpp"

namespace caffe {
namespace {

// A learned vector for each integer below input_dim: y[i] = weights[x[i]] + bias.
class EmbedLayer final : public Layer {
 public:
  explicit EmbedLayer(const LayerParameter& param) : Layer(param), options_(param.embed_param()) {
    Require(options_.num_output() > 0, "num_output is ", options_.num_output(),
            "; set embed_param { num_output } to at least 1");
    Require(options_.input_dim() > 0, "input_dim is ", options_.input_dim(),
            "; set embed_param { input_dim } to the number of different inputs");
  }

  LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    std::vector<int64_t> top = bottoms[0].dims();
    top.push_back(options_.num_output());
    return {Shape(top)};
  }

  std::vector<ParamDeclaration> Params(const std::vector<Shape>&) const override {
    const int64_t outputs = options_.num_output();
    std::vector<ParamDeclaration> params = {
        {Shape{options_.input_dim(), outputs}, options_.weight_filler()}};
    if (options_.bias_term()) params.push_back({Shape{outputs}, options_.bias_filler()});
    return params;
  }

  void EmitForward(GraphBuilder& graph) const override {
    Value* rows = graph.top(0);
    if (options_.bias_term()) rows = graph.Scratch("rows", graph.shape(graph.top(0)));
    graph.Emit(ops::Gather{}, {graph.param(0), graph.bottom(0)}, {rows});
    if (options_.bias_term()) {
      graph.Emit(ops::AddBias{LastAxis(graph)}, {rows, graph.param(1)}, {graph.top(0)});
    }
  }

  void EmitBackward(GraphBuilder& graph) const override {
    graph.Emit(ops::GatherGrad{}, {graph.top_diff(0), graph.bottom(0)}, {graph.param_diff(0)});
    if (options_.bias_term()) {
      graph.Emit(ops::SumToAxes{LastAxis(graph)}, {graph.top_diff(0)}, {graph.param_diff(1)});
    }
  }

  bool AllowForceBackward(int) const override { return false; }

 private:
  static ops::BroadcastAxes LastAxis(GraphBuilder& graph) {
    return {.axis = graph.shape(graph.top(0)).num_axes() - 1, .num_axes = 1};
  }

  const EmbedParameter options_;
};

REGISTER_LAYER_CLASS(Embed);

}  // namespace
}  // namespace caffe
