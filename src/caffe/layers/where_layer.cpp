#include "caffe/layer_factory.hpp"
#include "caffe/layers/broadcast.hpp"
#include "caffe/ops/combine.hpp"

namespace caffe {
namespace {

// Bottom 1 where bottom 0 is not 0, else bottom 2, with NumPy's broadcasting.
class WhereLayer final : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override { return {.num_bottoms = 3, .num_tops = 1}; }
  bool AllowForceBackward(int bottom) const override { return bottom > 0; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    return {BroadcastShape(bottoms)};
  }

  void EmitForward(GraphBuilder& graph) const override {
    const std::vector<Value*> inputs = {graph.bottom(1), graph.bottom(2), graph.bottom(0)};
    std::vector<Shape> shapes;
    for (Value* input : inputs) shapes.push_back(graph.shape(input));
    graph.Emit(ops::Choose{StepsOf(shapes, graph.shape(graph.top(0)))}, inputs, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    Value* dy = graph.top_diff(0);
    const Shape& whole = graph.shape(dy);
    const ops::BroadcastSteps steps = StepsOf({whole, graph.shape(graph.bottom(0))}, whole);
    for (int i = 1; i < 3; ++i) {
      if (!graph.wants_bottom_diff(i)) continue;
      const bool is_whole = graph.shape(graph.bottom(i)) == whole;
      const std::string number = std::to_string(i);
      Value* chosen = is_whole ? graph.bottom_diff(i) : graph.Scratch("chosen" + number, whole);
      graph.Emit(ops::ChooseGrad{i == 2, steps}, {dy, graph.bottom(0)}, {chosen});
      if (!is_whole) EmitSumOfRepeats(graph, "sorted" + number, chosen, graph.bottom_diff(i));
    }
  }
};

REGISTER_LAYER_CLASS(Where);

}  // namespace
}  // namespace caffe
