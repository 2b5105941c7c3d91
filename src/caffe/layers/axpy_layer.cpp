#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/eltwise.hpp"

namespace caffe {
namespace {

// y = a * x + b with one a per item and channel: squeeze-and-excitation with its shortcut (Hu et
// al. 2018). Bottoms: a (N,C or N,C,1,1), x and b (N,C,H,W).
class AxpyLayer final : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override { return {.num_bottoms = 3, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape &a = bottoms[0], &x = bottoms[1];
    Require(x.num_axes() >= 2, "bottom 1 has shape ", x, "; it must have items and channels");
    Require(a.num_axes() >= 2 && a[0] == x[0] && a[1] == x[1] && a.count(2) == 1,
            "bottom 0 has shape ", a,
            "; it must hold one factor per item and channel of bottom 1 (", x, ")");
    Require(x == bottoms[2], "bottoms 1 and 2 have shapes ", x, " and ", bottoms[2],
            "; they must be equal");
    return {x};
  }

  void EmitForward(GraphBuilder& graph) const override {
    Value* product = graph.Scratch("product", graph.shape(graph.bottom(1)));
    graph.Emit(ops::ScaleShift{kItemsAndChannels}, {graph.bottom(1), Factors(graph)}, {product});
    graph.Emit(ops::EltwiseSum{}, {product, graph.bottom(2)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    Value* dy = graph.top_diff(0);
    if (graph.wants_bottom_diff(0)) {
      Value* da = graph.Scratch("da", FactorShape(graph));
      graph.Emit(ops::SumToAxes{kItemsAndChannels}, {dy, graph.bottom(1)}, {da});
      graph.Emit(ops::View{}, {da}, {graph.bottom_diff(0)});
    }
    if (graph.wants_bottom_diff(1)) {
      graph.Emit(ops::ScaleShift{kItemsAndChannels}, {dy, Factors(graph)}, {graph.bottom_diff(1)});
    }
    graph.SetBottomDiff(2, dy);
  }

 private:
  static constexpr ops::BroadcastAxes kItemsAndChannels{.axis = 0, .num_axes = 2};

  static Shape FactorShape(GraphBuilder& graph) {
    const Shape& x = graph.shape(graph.bottom(1));
    return Shape{x[0], x[1]};
  }
  static Value* Factors(GraphBuilder& graph) {
    if (graph.shape(graph.bottom(0)).num_axes() == 2) return graph.bottom(0);
    Value* factors = graph.Scratch("factors", FactorShape(graph));
    graph.Emit(ops::View{}, {graph.bottom(0)}, {factors});
    return factors;
  }
};

REGISTER_LAYER_CLASS(Axpy);

}  // namespace
}  // namespace caffe
