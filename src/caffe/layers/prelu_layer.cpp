#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/prelu.hpp"

namespace caffe {
namespace {

// Leaky ReLU with a learned slope per channel, or a single one with channel_shared.
class PReLULayer final : public Layer {
 public:
  explicit PReLULayer(const LayerParameter& param) : Layer(param), options_(param.prelu_param()) {}

  LayerTraits traits() const override {
    return {.num_bottoms = 1, .num_tops = 1, .can_run_in_place = true};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    Require(bottoms[0].num_axes() >= 2, "the bottom has shape ", bottoms[0],
            "; it must have items and channels");
    return {bottoms[0]};
  }

  std::vector<ParamDeclaration> Params(const std::vector<Shape>& bottoms) const override {
    FillerParameter filler = options_.filler();
    if (!options_.has_filler()) filler.set_value(0.25f);
    return {{options_.channel_shared() ? Shape{} : Shape{bottoms[0][1]}, filler}};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::PRelu{Axes()}, {graph.bottom(0), graph.param(0)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    Value* dy = graph.top_diff(0);
    graph.Emit(ops::PReluGradSlope{Axes()}, {graph.bottom(0), dy}, {graph.param_diff(0)});
    graph.Emit(ops::PReluGrad{Axes()}, {graph.bottom(0), graph.param(0), dy},
               {graph.bottom_diff(0)});
  }

 private:
  ops::BroadcastAxes Axes() const {
    return options_.channel_shared() ? ops::BroadcastAxes{.axis = 0, .num_axes = 0}
                                     : ops::BroadcastAxes{.axis = 1, .num_axes = 1};
  }

  const PReLUParameter options_;
};

REGISTER_LAYER_CLASS(PReLU);

}  // namespace
}  // namespace caffe
