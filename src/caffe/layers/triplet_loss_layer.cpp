#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/loss_layer.hpp"
#include "caffe/ops/term_losses.hpp"

namespace caffe {
namespace {

// Requires a row to be nearer to a similar row than to another, by `margin` of squared distance
// (Schroff et al. 2015, "FaceNet"): sum of max(0, margin + |a - p|^2 - |a - n|^2) / (2 N). Bottoms:
// anchors a, positives p, negatives n, rows of the same shape.
class TripletLossLayer final : public LossLayer {
 public:
  explicit TripletLossLayer(const LayerParameter& param)
      : LossLayer(param), margin_(param.triplet_loss_param().margin()) {
    Require(margin_ >= 0, "margin is ", margin_, "; it must not be negative");
  }

  LayerTraits traits() const override { return {.num_bottoms = 3, .num_tops = 1, .is_loss = true}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    for (const Shape& bottom : bottoms) {
      Require(bottom.num_axes() >= 1 && bottom == bottoms[0], "the bottoms have shapes ",
              bottoms[0], ", ", bottoms[1], " and ", bottoms[2],
              "; anchors, likes and others must have the same");
    }
    return {Shape{}};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::TripletTerms(Width(graph), margin_),
               {graph.bottom(0), graph.bottom(1), graph.bottom(2)}, {Terms(graph)});
    graph.Emit(ops::SumOfTerms{0.5 / Items(graph)}, {Terms(graph)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    // The gradient of each bottom is the difference of the other two, or its negative.
    Emit(graph, 0, 2, 1);
    Emit(graph, 1, 1, 0);
    Emit(graph, 2, 0, 2);
  }

  bool AllowForceBackward(int) const override { return true; }

 private:
  static void Emit(GraphBuilder& graph, int bottom, int to, int from) {
    graph.Emit(ops::TripletGrad(Width(graph), 1 / Items(graph)),
               {graph.bottom(to), graph.bottom(from), Terms(graph), graph.top_diff(0)},
               {graph.bottom_diff(bottom)});
  }
  static int64_t Width(GraphBuilder& graph) { return graph.shape(graph.bottom(0)).count(1); }
  static double Items(GraphBuilder& graph) {
    return static_cast<double>(graph.shape(graph.bottom(0))[0]);
  }
  static Value* Terms(GraphBuilder& graph) {
    return graph.Saved("terms", Shape{graph.shape(graph.bottom(0))[0]});
  }

  const float margin_;
};

REGISTER_LAYER_CLASS(TripletLoss);

}  // namespace
}  // namespace caffe
