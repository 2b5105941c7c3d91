#include "caffe/layer_factory.hpp"
#include "caffe/ops/pointwise.hpp"

namespace caffe {
namespace {

// The logistic function:  y = 1 / (1 + exp(-x)).
class SigmoidLayer final : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override {
    return {.num_bottoms = 1, .num_tops = 1, .can_run_in_place = true};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    return {bottoms[0]};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::Sigmoid{}, {graph.bottom(0)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    graph.Emit(ops::SigmoidGrad{}, {graph.top(0), graph.top_diff(0)}, {graph.bottom_diff(0)});
  }
};

REGISTER_LAYER_CLASS(Sigmoid);

}  // namespace
}  // namespace caffe
