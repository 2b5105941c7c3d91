#include "caffe/layer_factory.hpp"
#include "caffe/ops/loss.hpp"

namespace caffe {
namespace {

// Probabilities along `axis`.
class SoftmaxLayer final : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override {
    return {.num_bottoms = 1, .num_tops = 1, .can_run_in_place = true};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    Axis(bottoms[0]);
    return {bottoms[0]};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::Softmax{.axis = Axis(graph.shape(graph.bottom(0)))}, {graph.bottom(0)},
               {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    graph.Emit(ops::SoftmaxGrad{.axis = Axis(graph.shape(graph.bottom(0)))},
               {graph.top(0), graph.top_diff(0)}, {graph.bottom_diff(0)});
  }

 private:
  int Axis(const Shape& shape) const { return shape.CanonicalAxis(param().softmax_param().axis()); }
};

REGISTER_LAYER_CLASS(Softmax);

}  // namespace
}  // namespace caffe
