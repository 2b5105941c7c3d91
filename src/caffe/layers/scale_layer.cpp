#include "caffe/layer_factory.hpp"
#include "caffe/layers/broadcast_axes.hpp"

namespace caffe {
namespace {

// y = x * s [+ b], where s and b are broadcast from `axis` on. s is a parameter or the second
// bottom; b is always a parameter, of the shape of s.
class ScaleLayer final : public Layer {
 public:
  explicit ScaleLayer(const LayerParameter& param) : Layer(param), options_(param.scale_param()) {}

  LayerTraits traits() const override {
    return {.min_bottoms = 1, .max_bottoms = 2, .num_tops = 1, .can_run_in_place = true};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    Axes(bottoms[0], is_learned() ? nullptr : &bottoms[1]);
    return {bottoms[0]};
  }

  std::vector<ParamDeclaration> Params(const std::vector<Shape>& bottoms) const override {
    const Shape shape =
        CoveredShape(bottoms[0], Axes(bottoms[0], is_learned() ? nullptr : &bottoms[1]));
    std::vector<ParamDeclaration> params;
    if (is_learned()) params.push_back({shape, ScaleFiller()});
    if (options_.bias_term()) params.push_back({shape, options_.bias_filler()});
    return params;
  }

  void EmitForward(GraphBuilder& graph) const override {
    std::vector<Value*> inputs = {graph.bottom(0), Factor(graph)};
    if (options_.bias_term()) inputs.push_back(graph.param(bias_index()));
    graph.Emit(ops::ScaleShift{Axes(graph)}, inputs, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    const ops::BroadcastAxes axes = Axes(graph);
    Value* dy = graph.top_diff(0);
    Value* ds = is_learned() ? graph.param_diff(0) : graph.bottom_diff(1);
    graph.Emit(ops::SumToAxes{axes}, {dy, graph.bottom(0)}, {ds});
    if (options_.bias_term())
      graph.Emit(ops::SumToAxes{axes}, {dy}, {graph.param_diff(bias_index())});
    graph.Emit(ops::ScaleShift{axes}, {dy, Factor(graph)}, {graph.bottom_diff(0)});
  }

 private:
  bool is_learned() const { return param().bottom_size() == 1; }
  int bias_index() const { return is_learned() ? 1 : 0; }

  Value* Factor(GraphBuilder& graph) const {
    return is_learned() ? graph.param(0) : graph.bottom(1);
  }

  // Without a filler in the file, scaling is initialised as the identity.
  FillerParameter ScaleFiller() const {
    FillerParameter filler = options_.filler();
    if (!options_.has_filler()) filler.set_value(1);
    return filler;
  }

  ops::BroadcastAxes Axes(const Shape& bottom, const Shape* operand) const {
    return operand == nullptr ? LearnedAxes(bottom, options_.axis(), options_.num_axes())
                              : BottomAxes(bottom, options_.axis(), *operand);
  }
  ops::BroadcastAxes Axes(GraphBuilder& graph) const {
    return Axes(graph.shape(graph.bottom(0)),
                is_learned() ? nullptr : &graph.shape(graph.bottom(1)));
  }

  const ScaleParameter options_;
};

REGISTER_LAYER_CLASS(Scale);

}  // namespace
}  // namespace caffe
