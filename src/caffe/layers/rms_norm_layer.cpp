#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/broadcast_axes.hpp"
#include "caffe/layers/norm_eps.hpp"
#include "caffe/ops/row_norm.hpp"

namespace caffe {
namespace {

// Divides the elements of the axes from `axis` on by their root mean square (Zhang and Sennrich
// 2019), then scales them with one learned number per element.
class RMSNormLayer final : public Layer {
 public:
  explicit RMSNormLayer(const LayerParameter& param)
      : Layer(param), options_(param.rms_norm_param()) {
    RequireEps(options_.eps());
    Require(options_.affine() || !options_.has_scale_filler(),
            "affine is false, but there is a filler for the scale; leave out one");
  }

  LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    Axes(bottoms[0]);
    return {bottoms[0]};
  }

  std::vector<ParamDeclaration> Params(const std::vector<Shape>& bottoms) const override {
    if (!options_.affine()) return {};
    FillerParameter scale = options_.scale_filler();
    if (!options_.has_scale_filler()) scale.set_value(1);
    return {{CoveredShape(bottoms[0], Axes(bottoms[0])), scale}};
  }

  void EmitForward(GraphBuilder& graph) const override {
    std::vector<Value*> inputs = {graph.bottom(0)}, outputs = {graph.top(0)};
    if (options_.affine()) inputs.push_back(graph.param(0));
    if (graph.with_backward()) outputs.push_back(Rms(graph));
    graph.Emit(Norm(graph), inputs, outputs);
  }

  // The gradient of the scale normalises again rather than keep a tensor of the bottom's size.
  void EmitBackward(GraphBuilder& graph) const override {
    const ops::BroadcastAxes axes = Axes(graph.shape(graph.bottom(0)));
    Value* dy = graph.top_diff(0);
    std::vector<Value*> inputs = {graph.bottom(0), Rms(graph), dy};
    if (options_.affine()) {
      inputs.push_back(graph.param(0));
      if (Value* dscale = graph.param_diff(0); dscale != nullptr) {
        Value* normalised = graph.Scratch("normalised", graph.shape(graph.bottom(0)));
        graph.Emit(Norm(graph), {graph.bottom(0)}, {normalised});
        graph.Emit(ops::SumToAxes{axes}, {dy, normalised}, {dscale});
      }
    }
    graph.Emit(ops::RmsNormGrad{.axis = axes.axis}, inputs, {graph.bottom_diff(0)});
  }

 private:
  ops::BroadcastAxes Axes(const Shape& bottom) const {
    return LearnedAxes(bottom, options_.axis(), -1);
  }
  ops::RmsNorm Norm(const GraphBuilder& graph) const {
    return {.axis = Axes(graph.shape(graph.bottom(0))).axis, .eps = options_.eps()};
  }
  Value* Rms(GraphBuilder& graph) const {
    const Shape& bottom = graph.shape(graph.bottom(0));
    return graph.Saved("rms", Shape{bottom.count(0, Axes(bottom).axis)});
  }

  const RMSNormParameter options_;
};

REGISTER_LAYER_CLASS(RMSNorm);

}  // namespace
}  // namespace caffe
