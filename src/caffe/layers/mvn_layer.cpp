#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/norm_eps.hpp"
#include "caffe/ops/row_norm.hpp"

namespace caffe {
namespace {

// Subtracts the mean and divides by the standard deviation, per plane or (across_channels) per
// item.
class MVNLayer final : public Layer {
 public:
  explicit MVNLayer(const LayerParameter& param) : Layer(param), options_(param.mvn_param()) {
    RequireEps(options_.eps());
  }

  LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    Require(bottoms[0].num_axes() >= 2, "the bottom has shape ", bottoms[0],
            "; it must have items and channels");
    return {bottoms[0]};
  }

  void EmitForward(GraphBuilder& graph) const override {
    std::vector<Value*> outputs = {graph.top(0)};
    if (divides() && graph.with_backward()) outputs.push_back(Deviation(graph));
    graph.Emit(ops::Mvn{.axis = axis(), .divides = divides(), .eps = options_.eps()},
               {graph.bottom(0)}, outputs);
  }

  void EmitBackward(GraphBuilder& graph) const override {
    std::vector<Value*> inputs = {nullptr, nullptr, graph.top_diff(0)};
    if (divides()) inputs = {graph.top(0), Deviation(graph), graph.top_diff(0)};
    graph.Emit(ops::MvnGrad{.axis = axis(), .divides = divides()}, inputs, {graph.bottom_diff(0)});
  }

 private:
  int axis() const { return options_.across_channels() ? 1 : 2; }
  bool divides() const { return options_.normalize_variance(); }
  Value* Deviation(GraphBuilder& graph) const {
    return graph.Saved("deviation", Shape{graph.shape(graph.bottom(0)).count(0, axis())});
  }

  const MVNParameter options_;
};

REGISTER_LAYER_CLASS(MVN);

}  // namespace
}  // namespace caffe
