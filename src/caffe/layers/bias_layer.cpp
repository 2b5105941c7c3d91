#include "caffe/layer_factory.hpp"
#include "caffe/layers/broadcast_axes.hpp"

namespace caffe {
namespace {

// y = x + b, where b is broadcast from `axis` on: a parameter, or the second bottom.
class BiasLayer final : public Layer {
 public:
  explicit BiasLayer(const LayerParameter& param) : Layer(param), options_(param.bias_param()) {}

  LayerTraits traits() const override {
    return {.min_bottoms = 1, .max_bottoms = 2, .num_tops = 1, .can_run_in_place = true};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    Axes(bottoms[0], is_learned() ? nullptr : &bottoms[1]);
    return {bottoms[0]};
  }

  std::vector<ParamDeclaration> Params(const std::vector<Shape>& bottoms) const override {
    if (!is_learned()) return {};
    return {{CoveredShape(bottoms[0], Axes(bottoms[0], nullptr)), options_.filler()}};
  }

  void EmitForward(GraphBuilder& graph) const override {
    Value* b = is_learned() ? graph.param(0) : graph.bottom(1);
    graph.Emit(ops::AddBias{Axes(graph)}, {graph.bottom(0), b}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    Value* db = is_learned() ? graph.param_diff(0) : graph.bottom_diff(1);
    graph.Emit(ops::SumToAxes{Axes(graph)}, {graph.top_diff(0)}, {db});
    graph.SetBottomDiff(0, graph.top_diff(0));
  }

 private:
  bool is_learned() const { return param().bottom_size() == 1; }

  ops::BroadcastAxes Axes(const Shape& bottom, const Shape* operand) const {
    return operand == nullptr ? LearnedAxes(bottom, options_.axis(), options_.num_axes())
                              : BottomAxes(bottom, options_.axis(), *operand);
  }
  ops::BroadcastAxes Axes(GraphBuilder& graph) const {
    return Axes(graph.shape(graph.bottom(0)),
                is_learned() ? nullptr : &graph.shape(graph.bottom(1)));
  }

  const BiasParameter options_;
};

REGISTER_LAYER_CLASS(Bias);

}  // namespace
}  // namespace caffe
