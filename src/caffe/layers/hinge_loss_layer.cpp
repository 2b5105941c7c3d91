#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/loss_layer.hpp"
#include "caffe/ops/class_losses.hpp"

namespace caffe {
namespace {

// One-vs-all hinge loss of scores and integer labels; norm L2 squares the margins.
class HingeLossLayer final : public LossLayer {
 public:
  using LossLayer::LossLayer;

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    RequireLabelPerItem(bottoms[0], bottoms[1]);
    return LossLayer::InferTopShapes(bottoms);
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::HingeLoss{is_squared()}, {graph.bottom(0), graph.bottom(1)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    graph.Emit(ops::HingeLossGrad{is_squared()},
               {graph.bottom(0), graph.bottom(1), graph.top_diff(0)}, {graph.bottom_diff(0)});
  }

 private:
  bool is_squared() const { return param().hinge_loss_param().norm() == HingeLossParameter::L2; }
};

REGISTER_LAYER_CLASS(HingeLoss);

}  // namespace
}  // namespace caffe
