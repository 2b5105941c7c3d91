#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/loss_layer.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/pair_losses.hpp"
#include "caffe/ops/term_losses.hpp"

namespace caffe {
namespace {

// Sum of absolute differences per item; both bottoms get gradients. With a single bottom or with
// options it is FlowNet's loss (Dosovitskiy et al. 2015): a single bottom is the difference itself,
// and NaN in the ground truth (bottom 1) or in that difference marks unknown values, which are
// ignored.
class L1LossLayer final : public LossLayer {
 public:
  explicit L1LossLayer(const LayerParameter& param)
      : LossLayer(param), options_(param.l1_loss_param()) {
    Require(options_.epsilon() >= 0 && options_.plateau() >= 0, "epsilon and plateau are ",
            options_.epsilon(), " and ", options_.plateau(), "; neither may be negative");
    Require(!options_.l2_prescale_by_channels() || options_.l2_per_location(),
            "l2_prescale_by_channels needs l2_per_location: true");
  }

  LayerTraits traits() const override {
    return {.min_bottoms = 1, .max_bottoms = 2, .num_tops = 1, .is_loss = true};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    RequireEqualCounts(bottoms[0], bottoms.back());
    const int least = options_.l2_per_location() ? 2 : 1;
    Require(!IsFlowNets() || bottoms[0].num_axes() >= least, "bottom 0 has shape ", bottoms[0],
            "; it must have at least ", least, " axes");
    return bottoms.size() == 1 ? std::vector<Shape>{Shape{}} : LossLayer::InferTopShapes(bottoms);
  }

  void EmitForward(GraphBuilder& graph) const override {
    if (!IsFlowNets()) {
      graph.Emit(ops::L1Loss{}, Bottoms(graph), {graph.top(0)});
      return;
    }
    const ops::FlowOp flow = Flow(graph);
    const Shape& x = graph.shape(graph.bottom(0));
    Value* terms = graph.Saved(
        "terms", options_.l2_per_location() ? Shape{x[0] * flow.inner} : Shape{x.count()});
    graph.Emit(ops::FlowTerms{flow}, Bottoms(graph), {terms});
    EmitDivisor(graph, flow);
    graph.Emit(ops::SumOfTerms{}, {terms, Divisor(graph)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    for (int i = 0; i < graph.num_bottoms(); ++i) {
      const int sign = i == 0 ? 1 : -1;
      if (IsFlowNets()) {
        std::vector<Value*> inputs = Bottoms(graph);
        inputs.insert(inputs.end(), {Divisor(graph), graph.top_diff(0)});
        graph.Emit(ops::FlowGrad(Flow(graph), sign), inputs, {graph.bottom_diff(i)});
      } else {
        graph.Emit(ops::L1LossGrad{.sign = sign},
                   {graph.bottom(0), graph.bottom(1), graph.top_diff(0)}, {graph.bottom_diff(i)});
      }
    }
  }

  bool AllowForceBackward(int) const override { return true; }

 private:
  bool IsFlowNets() const { return param().has_l1_loss_param() || param().bottom_size() == 1; }

  // The second one is null if it is missing.
  static std::vector<Value*> Bottoms(GraphBuilder& graph) {
    return {graph.bottom(0), graph.num_bottoms() > 1 ? graph.bottom(1) : nullptr};
  }

  ops::FlowOp Flow(GraphBuilder& graph) const {
    const Shape& x = graph.shape(graph.bottom(0));
    ops::FlowOp flow;
    flow.channels = x.LegacyExtent(1);
    flow.inner = x.num_axes() > 2 ? x.count(2) : 1;
    flow.per_location = options_.l2_per_location();
    flow.scale = options_.l2_prescale_by_channels() ? 1 / static_cast<double>(flow.channels) : 1;
    flow.epsilon = options_.epsilon();
    flow.plateau = options_.plateau();
    return flow;
  }

  // The number of items, or of known differences divided by the number of channels.
  void EmitDivisor(GraphBuilder& graph, const ops::FlowOp& flow) const {
    const Shape& x = graph.shape(graph.bottom(0));
    if (!options_.normalize_by_num_entries()) {
      graph.Emit(ops::Fill{static_cast<double>(x[0])}, {}, {Divisor(graph)});
      return;
    }
    Value* numbers = graph.Saved("numbers", Shape{x.count()});
    graph.Emit(ops::FlowNumbers{flow}, Bottoms(graph), {numbers});
    graph.Emit(ops::SumOfTerms{1 / static_cast<double>(flow.channels)}, {numbers},
               {Divisor(graph)});
  }
  static Value* Divisor(GraphBuilder& graph) { return graph.Saved("divisor", Shape{}); }

  const L1LossParameter options_;
};

REGISTER_LAYER_CLASS(L1Loss);

}  // namespace
}  // namespace caffe
