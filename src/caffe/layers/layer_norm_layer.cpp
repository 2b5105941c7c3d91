#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/broadcast_axes.hpp"
#include "caffe/layers/norm_eps.hpp"
#include "caffe/ops/row_norm.hpp"

namespace caffe {
namespace {

// Normalises the elements of the axes from `axis` on (Ba et al. 2016), then scales and shifts them
// with one learned pair per element.
class LayerNormLayer final : public Layer {
 public:
  explicit LayerNormLayer(const LayerParameter& param)
      : Layer(param), options_(param.layer_norm_param()) {
    RequireEps(options_.eps());
    Require(options_.affine() || !(options_.has_scale_filler() || options_.has_bias_filler()),
            "affine is false, but there is a filler for the scale or the bias; leave out one");
  }

  LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    Axes(bottoms[0]);
    return {bottoms[0]};
  }

  std::vector<ParamDeclaration> Params(const std::vector<Shape>& bottoms) const override {
    if (!options_.affine()) return {};
    const Shape shape = CoveredShape(bottoms[0], Axes(bottoms[0]));
    FillerParameter scale = options_.scale_filler();
    if (!options_.has_scale_filler()) scale.set_value(1);
    return {{shape, scale}, {shape, options_.bias_filler()}};
  }

  void EmitForward(GraphBuilder& graph) const override {
    const ops::BroadcastAxes axes = Axes(graph.shape(graph.bottom(0)));
    Value* normalised = Normalised(graph);
    std::vector<Value*> outputs = {normalised};
    if (graph.with_backward()) outputs.push_back(Deviation(graph));
    graph.Emit(ops::Mvn{.axis = axes.axis, .eps = options_.eps(), .eps_in_root = true},
               {graph.bottom(0)}, outputs);
    if (!options_.affine()) return;
    graph.Emit(ops::ScaleShift{axes}, {normalised, graph.param(0), graph.param(1)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    const ops::BroadcastAxes axes = Axes(graph.shape(graph.bottom(0)));
    Value* dnormalised = graph.top_diff(0);
    if (options_.affine()) {
      graph.Emit(ops::SumToAxes{axes}, {graph.top_diff(0), Normalised(graph)},
                 {graph.param_diff(0)});
      graph.Emit(ops::SumToAxes{axes}, {graph.top_diff(0)}, {graph.param_diff(1)});
      if (!graph.wants_bottom_diff(0)) return;
      dnormalised = graph.Scratch("dnormalised", graph.shape(graph.bottom(0)));
      graph.Emit(ops::ScaleShift{axes}, {graph.top_diff(0), graph.param(0)}, {dnormalised});
    }
    graph.Emit(ops::MvnGrad{.axis = axes.axis}, {Normalised(graph), Deviation(graph), dnormalised},
               {graph.bottom_diff(0)});
  }

 private:
  ops::BroadcastAxes Axes(const Shape& bottom) const {
    return LearnedAxes(bottom, options_.axis(), -1);
  }
  Value* Normalised(GraphBuilder& graph) const {
    if (!options_.affine()) return graph.top(0);
    return graph.Saved("normalised", graph.shape(graph.bottom(0)), SavedAs::kData);
  }
  Value* Deviation(GraphBuilder& graph) const {
    const Shape& bottom = graph.shape(graph.bottom(0));
    return graph.Saved("deviation", Shape{bottom.count(0, Axes(bottom).axis)});
  }

  const LayerNormParameter options_;
};

REGISTER_LAYER_CLASS(LayerNorm);

}  // namespace
}  // namespace caffe
