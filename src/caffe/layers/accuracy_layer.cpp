#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/loss_layer.hpp"

namespace caffe {
namespace {

// Fraction of items whose label is among the top_k scores; ties and NaN count against the label.
// Top 1, if present, is the accuracy of each class.
class AccuracyLayer final : public Layer {
 public:
  explicit AccuracyLayer(const LayerParameter& param)
      : Layer(param), options_(param.accuracy_param()) {}

  LayerTraits traits() const override {
    return {.num_bottoms = 2, .min_tops = 1, .max_tops = 2, .has_backward = false};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const int axis = bottoms[0].CanonicalAxis(options_.axis());
    Require(
        !AreSoftLabels(bottoms[0], axis, bottoms[1]), "the labels have shape ", bottoms[1],
        ", a share of each class; Accuracy compares with whole numbers: give it the labels from "
        "before Mixup, or limit it to phase TEST");
    RequireLabelPerPosition(bottoms[0], axis, bottoms[1]);
    const auto top_k = static_cast<int64_t>(options_.top_k());
    Require(1 <= top_k && top_k <= bottoms[0][axis], "top_k is ", top_k, ", but there are ",
            bottoms[0][axis], " classes; it must lie between 1 and their number");
    std::vector<Shape> tops = {Shape{}};
    if (param().top_size() > 1) tops.push_back(Shape{bottoms[0][axis]});
    return tops;
  }

  void EmitForward(GraphBuilder& graph) const override {
    ops::Accuracy op{.axis = graph.shape(graph.bottom(0)).CanonicalAxis(options_.axis()),
                     .top_k = static_cast<int>(options_.top_k()),
                     .nan_is_right = options_.nan_is_right()};
    if (options_.has_ignore_label()) {
      op.ignore_label = options_.ignore_label();
    } else if (options_.has_void_label()) {
      const int64_t classes = graph.shape(graph.bottom(0))[op.axis];
      const int64_t label = options_.void_label();
      if (label < 0 || label >= classes) op.ignore_label = options_.void_label();
    }
    std::vector<Value*> tops = {graph.top(0)};
    if (graph.num_tops() > 1) tops.push_back(graph.top(1));
    graph.Emit(op, {graph.bottom(0), graph.bottom(1)}, tops);
  }

 private:
  const AccuracyParameter options_;
};

REGISTER_LAYER_CLASS(Accuracy);

}  // namespace
}  // namespace caffe
