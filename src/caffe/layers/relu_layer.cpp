#include "caffe/layer_factory.hpp"
#include "caffe/ops/pointwise.hpp"

namespace caffe {
namespace {

// ReLU and leaky ReLU:  y = max(x, 0) + negative_slope * min(x, 0).
class ReLULayer final : public Layer {
 public:
  explicit ReLULayer(const LayerParameter& param)
      : Layer(param), negative_slope_(param.relu_param().negative_slope()) {}

  LayerTraits traits() const override {
    return {.num_bottoms = 1, .num_tops = 1, .can_run_in_place = output_keeps_sign()};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    return {bottoms[0]};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::Relu{negative_slope_}, {graph.bottom(0)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    // Reading y instead of x lets the memory plan reuse x as soon as y exists.
    Value* sign_source = output_keeps_sign() ? graph.top(0) : graph.bottom(0);
    graph.Emit(ops::ReluGrad{negative_slope_}, {sign_source, graph.top_diff(0)},
               {graph.bottom_diff(0)});
  }

 private:
  bool output_keeps_sign() const { return negative_slope_ >= 0; }

  const float negative_slope_;
};

REGISTER_LAYER_CLASS(ReLU);

}  // namespace
}  // namespace caffe
