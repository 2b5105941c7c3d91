#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/arrange.hpp"

namespace caffe {
namespace {

// Item i of the top is item bottom1[i] of bottom 0.
class BatchReindexLayer final : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override { return {.num_bottoms = 2, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    Require(bottoms[1].num_axes() == 1, "bottom 1 has shape ", bottoms[1],
            "; it must be a list of indices, one axis");
    Require(bottoms[0].num_axes() >= 1, "bottom 0 is a scalar; it must have items");
    return {bottoms[0].With(0, bottoms[1][0])};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::Gather{}, {graph.bottom(0), graph.bottom(1)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    graph.Emit(ops::GatherGrad{}, {graph.top_diff(0), graph.bottom(1)}, {graph.bottom_diff(0)});
  }

  bool AllowForceBackward(int bottom) const override { return bottom == 0; }
};

REGISTER_LAYER_CLASS(BatchReindex);

}  // namespace
}  // namespace caffe
