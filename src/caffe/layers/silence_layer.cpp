#include "caffe/layer_factory.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

// Consumes its bottoms, so that they are not outputs of the net. Their gradient is zero.
class SilenceLayer final : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override { return {.min_bottoms = 1, .num_tops = 0}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>&) const override { return {}; }

  void EmitForward(GraphBuilder&) const override {}

  void EmitBackward(GraphBuilder& graph) const override {
    for (int i = 0; i < graph.num_bottoms(); ++i) {
      graph.Emit(ops::Fill{.value = 0}, {}, {graph.bottom_diff(i)});
    }
  }
};

REGISTER_LAYER_CLASS(Silence);

}  // namespace
}  // namespace caffe
