#include <algorithm>

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/loss_layer.hpp"
#include "caffe/ops/term_losses.hpp"

namespace caffe {
namespace {

// Kullback-Leibler divergence of the targets (bottom 1) from log-probabilities (bottom 0), divided
// by the number of items.
class KLDivLossLayer final : public LossLayer {
 public:
  explicit KLDivLossLayer(const LayerParameter& param)
      : LossLayer(param), log_target_(param.kl_div_loss_param().log_target()) {
    WarnOfUnusedLossFields(param, {"normalize", "normalization", "pre_fixed_normalizer"});
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    RequireEqualCounts(bottoms[0], bottoms[1]);
    return LossLayer::InferTopShapes(bottoms);
  }

  void EmitForward(GraphBuilder& graph) const override {
    Value* terms = graph.Scratch("terms", Shape{graph.shape(graph.bottom(0)).count()});
    graph.Emit(ops::KLDivTerms(log_target_), {graph.bottom(0), graph.bottom(1)}, {terms});
    graph.Emit(ops::SumOfTerms{Coefficient(graph)}, {terms}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    graph.Emit(ops::KLDivGrad(log_target_, Coefficient(graph)),
               {graph.bottom(1), graph.top_diff(0)}, {graph.bottom_diff(0)});
  }

 private:
  double Coefficient(GraphBuilder& graph) const {
    const Shape& shape = graph.shape(graph.bottom(0));
    const int64_t items = shape.LegacyExtent(0);
    return 1 / ParseLabelRule(param().loss_param(), 0, ops::Normalization::kBatchSize)
                   .Divisor(items, shape.count() / std::max<int64_t>(items, 1), shape.count());
  }

  const bool log_target_;
};

REGISTER_LAYER_CLASS(KLDivLoss, "loss_param");

}  // namespace
}  // namespace caffe
