#include "caffe/layer_factory.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/eltwise.hpp"

namespace caffe {
namespace {

// Every top is the bottom; its gradient is the sum of the tops' gradients.
class SplitLayer final : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override { return {.num_bottoms = 1, .min_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    return std::vector<Shape>(param().top_size(), bottoms[0]);
  }

  void EmitForward(GraphBuilder& graph) const override {
    for (int i = 0; i < graph.num_tops(); ++i) {
      graph.Emit(ops::View{.keeps_shape = true}, {graph.bottom(0)}, {graph.top(i)});
    }
  }

  void EmitBackward(GraphBuilder& graph) const override {
    std::vector<Value*> gradients;
    for (int i = 0; i < graph.num_tops(); ++i) gradients.push_back(graph.top_diff(i));
    graph.Emit(ops::EltwiseSum{}, gradients, {graph.bottom_diff(0)});
  }
};

REGISTER_LAYER_CLASS(Split);

}  // namespace
}  // namespace caffe
