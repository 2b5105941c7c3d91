#include "caffe/core/philox.hpp"
#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/pointwise.hpp"
#include "caffe/ops/random.hpp"

namespace caffe {
namespace {

// In training, zeroes each element with probability dropout_ratio and scales the others by 1 / (1 -
// dropout_ratio); in testing, the identity. With scale_train: false, training does not scale and
// testing multiplies by 1 - dropout_ratio. No mask is stored, because backward draws it again.
class DropoutLayer final : public Layer {
 public:
  explicit DropoutLayer(const LayerParameter& param)
      : Layer(param),
        ratio_(param.dropout_param().dropout_ratio()),
        scales_training_(param.dropout_param().scale_train()),
        drops_(phase() == TRAIN || param.dropout_param().sample_weights_test()) {
    Require(0 <= ratio_ && ratio_ < 1, "dropout_ratio is ", ratio_,
            "; it must be at least 0 and less than 1");
  }

  LayerTraits traits() const override {
    return {.num_bottoms = 1, .num_tops = 1, .can_run_in_place = true};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    return {bottoms[0]};
  }

  void EmitForward(GraphBuilder& graph) const override {
    EmitOn(graph, graph.bottom(0), graph.top(0));
  }

  void EmitBackward(GraphBuilder& graph) const override {
    EmitOn(graph, graph.top_diff(0), graph.bottom_diff(0));
  }

 private:
  void EmitOn(GraphBuilder& graph, Value* from, Value* to) const {
    if (drops_ && ratio_ > 0) {
      graph.Emit(
          ops::Dropout{.ratio = ratio_, .stream = StreamOf(name()), .scales = scales_training_},
          {from}, {to});
    } else if (!scales_training_ && ratio_ > 0) {
      graph.Emit(ops::ScaleBy{1 - ratio_}, {from}, {to});
    } else {
      graph.Emit(ops::View{.keeps_shape = true}, {from}, {to});
    }
  }

  const double ratio_;
  const bool scales_training_, drops_;
};

REGISTER_LAYER_CLASS(Dropout);

}  // namespace
}  // namespace caffe
