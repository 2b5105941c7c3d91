#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/loss_layer.hpp"
#include "caffe/ops/pair_losses.hpp"

namespace caffe {
namespace {

// Pulls similar pairs of rows together and pushes others at least `margin` apart. Bottoms: a, b
// (N,C or N,C,1,1) and one label per pair, 1 for similar.
class ContrastiveLossLayer final : public LossLayer {
 public:
  using LossLayer::LossLayer;

  LayerTraits traits() const override { return {.num_bottoms = 3, .num_tops = 1, .is_loss = true}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape &a = bottoms[0], &b = bottoms[1], &similar = bottoms[2];
    Require(a.LegacyExtent(1) == b.LegacyExtent(1), "bottoms of shapes ", a, " and ", b,
            " have different numbers of channels");
    for (const Shape& rows : {a, b}) {
      Require(rows.num_axes() >= 2 && rows.count(2) == 1, "a bottom has shape ", rows,
              "; it must be N,C or N,C,1,1");
    }
    Require(similar.count() == similar.LegacyExtent(0) && similar.LegacyExtent(0) == a[0],
            "bottom 2 has shape ", similar, "; it must hold one label for each of the ", a[0],
            " pairs");
    return LossLayer::InferTopShapes(bottoms);
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(
        ops::ContrastiveLoss{.margin = options().margin(), .legacy = options().legacy_version()},
        {graph.bottom(0), graph.bottom(1), graph.bottom(2)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    for (const int i : {0, 1}) {
      graph.Emit(ops::ContrastiveLossGrad{.margin = options().margin(),
                                          .legacy = options().legacy_version(),
                                          .sign = i == 0 ? 1 : -1},
                 {graph.bottom(0), graph.bottom(1), graph.bottom(2), graph.top_diff(0)},
                 {graph.bottom_diff(i)});
    }
  }

  bool AllowForceBackward(int bottom) const override { return bottom < 2; }

 private:
  const ContrastiveLossParameter& options() const { return param().contrastive_loss_param(); }
};

REGISTER_LAYER_CLASS(ContrastiveLoss);

}  // namespace
}  // namespace caffe
