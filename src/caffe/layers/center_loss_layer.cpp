#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/loss_layer.hpp"
#include "caffe/ops/term_losses.hpp"

namespace caffe {
namespace {

// Half the squared distance of features to the centre of their class, per item (Wen et al. 2016, "A
// discriminative feature learning approach for deep face recognition"). The centres are a parameter
// that moves towards the features of its class, independently of the loss weight.
class CenterLossLayer final : public LossLayer {
 public:
  explicit CenterLossLayer(const LayerParameter& param)
      : LossLayer(param), options_(param.center_loss_param()) {
    Require(options_.num_output() > 0, "num_output is ", options_.num_output(),
            "; set center_loss_param { num_output } to the number of classes");
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const int axis = bottoms[0].CanonicalAxis(options_.axis());
    Require(bottoms[0].count(0, axis) == bottoms[1].count(), "the features have shape ", bottoms[0],
            " and axis ", axis, ", the labels ", bottoms[1],
            "; give one label per row of features");
    return {Shape{}};
  }

  std::vector<ParamDeclaration> Params(const std::vector<Shape>& bottoms) const override {
    return {{Shape{options_.num_output(), Width(bottoms[0])}, options_.center_filler()}};
  }

  void EmitForward(GraphBuilder& graph) const override {
    Value* terms = graph.Saved("terms", Shape{Rows(graph)});
    graph.Emit(ops::CenterTerms(Width(graph), options_.num_output(), 1),
               {graph.bottom(0), graph.bottom(1), graph.param(0)}, {terms});
    graph.Emit(ops::SumOfTerms{0.5 / static_cast<double>(Rows(graph))}, {terms}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    const std::vector<Value*> inputs = {graph.bottom(0), graph.bottom(1), graph.param(0),
                                        graph.top_diff(0)};
    graph.Emit(
        ops::CenterGrad(Width(graph), options_.num_output(), 1 / static_cast<double>(Rows(graph))),
        inputs, {graph.bottom_diff(0)});
    const double weight = param().loss_weight_size() > 0 ? param().loss_weight(0) : 1;
    graph.Emit(ops::CenterStep(Rows(graph), Width(graph), options_.num_output(), 1 / weight),
               inputs, {graph.param_diff(0)});
  }

 private:
  int64_t Width(const Shape& features) const {
    return features.count(features.CanonicalAxis(options_.axis()));
  }
  int64_t Width(GraphBuilder& graph) const { return Width(graph.shape(graph.bottom(0))); }
  static int64_t Rows(GraphBuilder& graph) { return graph.shape(graph.bottom(1)).count(); }

  const CenterLossParameter options_;
};

REGISTER_LAYER_CLASS(CenterLoss);

}  // namespace
}  // namespace caffe
