#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/norm.hpp"
#include "caffe/ops/window.hpp"

namespace caffe {
namespace {

// Local response normalisation, across channels or within each channel.
class LRNLayer final : public Layer {
 public:
  explicit LRNLayer(const LayerParameter& param) : Layer(param), options_(param.lrn_param()) {
    Require(options_.local_size() % 2 == 1, "local_size is ", options_.local_size(),
            "; it must be odd, so that the window has a centre");
    Require(options_.local_size() <= ops::kMostPlaces, "local_size is ", options_.local_size(),
            "; it may be at most ", ops::kMostPlaces);
  }

  LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    Require(bottoms[0].num_axes() == 4, "needs a bottom with 4 axes (N,C,H,W), got shape ",
            bottoms[0]);
    return {bottoms[0]};
  }

  void EmitForward(GraphBuilder& graph) const override {
    Value *x = graph.bottom(0), *y = graph.top(0);
    if (is_across()) {
      graph.Emit(ops::Lrn{.size = options_.local_size(),
                          .alpha = options_.alpha(),
                          .beta = options_.beta(),
                          .k = options_.k()},
                 {x}, {y});
      return;
    }
    std::vector<Value*> outputs = {y};
    if (graph.with_backward()) outputs.push_back(Scale(graph));
    graph.Emit(
        ops::LrnWithin{
            .size = options_.local_size(), .alpha = options_.alpha(), .beta = options_.beta()},
        {x}, outputs);
  }

  void EmitBackward(GraphBuilder& graph) const override {
    Value *x = graph.bottom(0), *dy = graph.top_diff(0), *dx = graph.bottom_diff(0);
    if (is_across()) {
      graph.Emit(ops::LrnGrad{.size = options_.local_size(),
                              .alpha = options_.alpha(),
                              .beta = options_.beta(),
                              .k = options_.k()},
                 {x, dy}, {dx});
    } else {
      graph.Emit(
          ops::LrnWithinGrad{
              .size = options_.local_size(), .alpha = options_.alpha(), .beta = options_.beta()},
          {x, Scale(graph), dy}, {dx});
    }
  }

 private:
  bool is_across() const { return options_.norm_region() == LRNParameter::ACROSS_CHANNELS; }
  static Value* Scale(GraphBuilder& graph) {
    return graph.Saved("scale", graph.shape(graph.bottom(0)));
  }

  const LRNParameter options_;
};

REGISTER_LAYER_CLASS(LRN);

}  // namespace
}  // namespace caffe
