#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/norm_eps.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/row_norm.hpp"

namespace caffe {
namespace {

// Divides by the L2 norm of each item, or of the channels at each position, and multiplies by a
// learned scale per channel or, with channel_shared, a single one (Liu et al. 2015, "ParseNet").
class NormalizeLayer final : public Layer {
 public:
  explicit NormalizeLayer(const LayerParameter& param)
      : Layer(param), options_(param.norm_param()) {
    RequireEps(options_.eps());
  }

  LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    Require(bottoms[0].num_axes() >= 2, "the bottom has shape ", bottoms[0],
            "; it must have items and channels");
    return {bottoms[0]};
  }

  std::vector<ParamDeclaration> Params(const std::vector<Shape>& bottoms) const override {
    FillerParameter filler = options_.scale_filler();
    if (!options_.has_scale_filler()) filler.set_value(1);
    return {{options_.channel_shared() ? Shape{} : Shape{bottoms[0][1]}, filler}};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::L2Normalize{.across_spatial = options_.across_spatial(), .eps = options_.eps()},
               {graph.bottom(0)}, {Unit(graph), Norm(graph)});
    graph.Emit(ops::ScaleShift{Axes()}, {Unit(graph), graph.param(0)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    Value* dy = graph.top_diff(0);
    graph.Emit(ops::SumToAxes{Axes()}, {dy, Unit(graph)}, {graph.param_diff(0)});
    if (!graph.wants_bottom_diff(0)) return;
    Value* scaled = graph.Scratch("scaled_diff", graph.shape(dy));
    graph.Emit(ops::ScaleShift{Axes()}, {dy, graph.param(0)}, {scaled});
    graph.Emit(ops::L2NormalizeGrad{.across_spatial = options_.across_spatial()},
               {Unit(graph), Norm(graph), scaled}, {graph.bottom_diff(0)});
  }

 private:
  ops::BroadcastAxes Axes() const {
    return options_.channel_shared() ? ops::BroadcastAxes{.axis = 0, .num_axes = 0}
                                     : ops::BroadcastAxes{.axis = 1, .num_axes = 1};
  }
  Value* Unit(GraphBuilder& graph) const {
    return graph.Saved("unit", graph.shape(graph.bottom(0)), SavedAs::kData);
  }
  Value* Norm(GraphBuilder& graph) const {
    const Shape& shape = graph.shape(graph.bottom(0));
    return graph.Saved(
        "norm", options_.across_spatial() ? Shape{shape[0]} : Shape{shape[0] * shape.count(2)});
  }

  const NormalizeParameter options_;
};

REGISTER_LAYER_CLASS(Normalize);

}  // namespace
}  // namespace caffe
