#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/lstm_unit.hpp"

namespace caffe {
namespace {

// One LSTM step without its matrix products. Bottoms: c of the previous step (1,N,D), gate inputs
// (1,N,4D), cont (1,N); tops: c and h.
class LSTMUnitLayer final : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override { return {.num_bottoms = 3, .num_tops = 2}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape &c = bottoms[0], &gates = bottoms[1], &cont = bottoms[2];
    Require(c.num_axes() == 3 && c[0] == 1, "bottom 0 has shape ", c, "; it must be 1 x N x D");
    Require(gates == c.With(2, 4 * c[2]), "bottom 1 has shape ", gates, "; it must be ",
            c.With(2, 4 * c[2]), ", four gates for each unit of bottom 0");
    Require(cont.count() == c[1], "bottom 2 has shape ", cont,
            "; it must hold one number for each of ", c[1], " items");
    return {c, c};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::LstmUnit{}, {graph.bottom(0), graph.bottom(1), graph.bottom(2)},
               {graph.top(0), graph.top(1)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    graph.Emit(ops::LstmUnitGrad{},
               {graph.bottom(0), graph.bottom(1), graph.bottom(2), graph.top(0), graph.top_diff(0),
                graph.top_diff(1)},
               {graph.bottom_diff(0), graph.bottom_diff(1)});
  }

  bool AllowForceBackward(int bottom) const override { return bottom < 2; }
};

REGISTER_LAYER_CLASS(LSTMUnit);

}  // namespace
}  // namespace caffe
