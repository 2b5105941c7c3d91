#include "caffe/layer_factory.hpp"
#include "caffe/ops/activations.hpp"

namespace caffe {
namespace {

// y = 1 if x > threshold, otherwise 0. No gradient.
class ThresholdLayer final : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override {
    return {.num_bottoms = 1, .num_tops = 1, .can_run_in_place = true, .has_backward = false};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    return {bottoms[0]};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::Threshold(param().threshold_param().threshold()), {graph.bottom(0)},
               {graph.top(0)});
  }
};

REGISTER_LAYER_CLASS(Threshold);

}  // namespace
}  // namespace caffe
