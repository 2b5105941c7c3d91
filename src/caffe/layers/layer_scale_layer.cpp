#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/broadcast.hpp"

namespace caffe {
namespace {

// Scales each element of the last axis with a learned number (Touvron et al. 2021). It belongs at
// the end of a residual branch, which begins as nearly nothing.
class LayerScaleLayer final : public Layer {
 public:
  explicit LayerScaleLayer(const LayerParameter& param)
      : Layer(param), initial_(param.layer_scale_param().initial()) {}

  LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    Require(bottoms[0].num_axes() >= 1, "the bottom is a scalar; it must have an axis");
    return {bottoms[0]};
  }

  std::vector<ParamDeclaration> Params(const std::vector<Shape>& bottoms) const override {
    FillerParameter filler;
    filler.set_value(initial_);
    return {{Shape{bottoms[0][-1]}, filler}};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::ScaleShift{LastAxis(graph)}, {graph.bottom(0), graph.param(0)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    graph.Emit(ops::SumToAxes{LastAxis(graph)}, {graph.top_diff(0), graph.bottom(0)},
               {graph.param_diff(0)});
    graph.Emit(ops::ScaleShift{LastAxis(graph)}, {graph.top_diff(0), graph.param(0)},
               {graph.bottom_diff(0)});
  }

 private:
  static ops::BroadcastAxes LastAxis(const GraphBuilder& graph) {
    return {.axis = graph.shape(graph.bottom(0)).num_axes() - 1, .num_axes = 1};
  }

  const float initial_;
};

REGISTER_LAYER_CLASS(LayerScale);

}  // namespace
}  // namespace caffe
