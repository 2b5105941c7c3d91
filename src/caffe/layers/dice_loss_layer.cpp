#include <algorithm>
#include <cmath>

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/loss_layer.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/term_losses.hpp"

namespace caffe {
namespace {

// 1 - the overlap of scores (bottom 0) and targets (bottom 1), for each channel of each item, and
// the mean of these (Milletari et al. 2016).
class DiceLossLayer final : public LossLayer {
 public:
  explicit DiceLossLayer(const LayerParameter& param)
      : LossLayer(param), options_(param.dice_loss_param()) {
    Require(options_.smooth() >= 0 && std::isfinite(options_.smooth()), "smooth is ",
            options_.smooth(), "; it must be a number from 0 up");
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    Require(bottoms[0] == bottoms[1] && bottoms[0].num_axes() >= 2, "the bottoms have shapes ",
            bottoms[0], " and ", bottoms[1],
            "; scores and targets must have one shape, with items and channels");
    return LossLayer::InferTopShapes(bottoms);
  }

  void EmitForward(GraphBuilder& graph) const override {
    Value *p = graph.bottom(0), *t = graph.bottom(1);
    graph.Emit(ops::SumToAxes{kChannels}, {p, t}, {Sum(graph, "overlap")});
    EmitArea(graph, p, Sum(graph, "area_of_scores"));
    EmitArea(graph, t, Sum(graph, "area_of_targets"));
    Value* terms = graph.Scratch("terms", graph.shape(Sum(graph, "overlap")));
    graph.Emit(ops::DiceTerms{Options()}, Sums(graph), {terms});
    graph.Emit(ops::SumOfTerms{Coefficient(graph)}, {terms}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    std::vector<Value*> inputs = {graph.bottom(0), graph.bottom(1)};
    for (Value* sum : Sums(graph)) inputs.push_back(sum);
    inputs.push_back(graph.top_diff(0));
    graph.Emit(ops::DiceGrad(Options(), graph.shape(graph.bottom(0)).count(2), Coefficient(graph)),
               inputs, {graph.bottom_diff(0)});
  }

 private:
  static constexpr ops::BroadcastAxes kChannels{.axis = 0, .num_axes = 2};

  ops::DiceOp Options() const {
    return ops::DiceOp(static_cast<double>(options_.smooth()), options_.squares());
  }
  // A number for each channel of each item.
  static Value* Sum(GraphBuilder& graph, const std::string& name) {
    const Shape& shape = graph.shape(graph.bottom(0));
    return graph.Saved(name, Shape{shape[0], shape[1]});
  }
  static std::vector<Value*> Sums(GraphBuilder& graph) {
    return {Sum(graph, "overlap"), Sum(graph, "area_of_scores"), Sum(graph, "area_of_targets")};
  }
  void EmitArea(GraphBuilder& graph, Value* x, Value* area) const {
    graph.Emit(ops::SumToAxes{kChannels}, {x, options_.squares() ? x : nullptr}, {area});
  }
  static double Coefficient(GraphBuilder& graph) {
    const Shape& shape = graph.shape(graph.bottom(0));
    return 1 / static_cast<double>(std::max<int64_t>(shape[0] * shape[1], 1));
  }

  const DiceLossParameter options_;
};

REGISTER_LAYER_CLASS(DiceLoss);

}  // namespace
}  // namespace caffe
