#include "caffe/core/philox.hpp"
#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/loss_layer.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/mixup.hpp"

namespace caffe {
namespace {

// Bottoms: data (N x ...), labels (N integers from 0 to num_classes - 1). Tops: the data, mixed in
// training; the labels as class shares (N x num_classes), as used by SoftmaxWithLoss and
// SigmoidCrossEntropyLoss. In testing the data is unchanged and the shares are 0 and 1.
class MixupLayer final : public Layer {
 public:
  explicit MixupLayer(const LayerParameter& param) : Layer(param), options_(param.mixup_param()) {
    Require(options_.num_classes() > 0, "mixup_param { num_classes } is ", options_.num_classes(),
            "; give the number of classes");
    const auto check_alpha = [](const char* name, float alpha) {
      Require(0 < alpha && alpha <= 1e6f, "mixup_param { ", name, " } is ", alpha,
              "; give a number above 0 and up to 1e6");
    };
    check_alpha("alpha", options_.alpha());
    check_alpha("cutmix_alpha", options_.cutmix_alpha());
    const auto check_prob = [](const char* name, float prob) {
      Require(0 <= prob && prob <= 1, "mixup_param { ", name, " } is ", prob, "; give 0 to 1");
    };
    check_prob("prob", options_.prob());
    check_prob("cutmix_prob", options_.cutmix_prob());
  }

  LayerTraits traits() const override {
    return {.num_bottoms = 2, .num_tops = 2, .can_run_in_place = true};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape& data = bottoms[0];
    RequireLabelPerItem(data, bottoms[1]);
    Require(!mixes() || data[0] >= 2, "a batch of ", data[0],
            " has nothing to mix; raise batch_size, or limit the layer to another phase");
    Require(!cuts() || data.num_axes() == 4, "the data have shape ", data,
            ", but CutMix needs images of shape NxCxHxW; set cutmix_prob: 0");
    return {data, {data[0], options_.num_classes()}};
  }

  void EmitForward(GraphBuilder& graph) const override {
    const ops::MixLabels labels{options_.num_classes()};
    if (!mixes()) {
      graph.Emit(ops::View{.keeps_shape = true}, {graph.bottom(0)}, {graph.top(0)});
      graph.Emit(labels, {graph.bottom(1)}, {graph.top(1)});
      return;
    }
    const Shape& data = graph.shape(graph.bottom(0));
    ops::DrawMix draw{.stream = StreamOf(name()),
                      .prob = options_.prob(),
                      .alpha = options_.alpha(),
                      .cutmix_prob = options_.cutmix_prob(),
                      .cutmix_alpha = options_.cutmix_alpha(),
                      .items = data[0]};
    if (cuts()) draw.height = data[2], draw.width = data[3];
    graph.Emit(draw, {}, {SavedMix(graph)});
    graph.Emit(ops::MixItems{}, {graph.bottom(0), SavedMix(graph)}, {graph.top(0)});
    graph.Emit(labels, {graph.bottom(1), SavedMix(graph)}, {graph.top(1)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    if (!graph.wants_bottom_diff(0)) return;
    if (mixes()) {
      graph.Emit(ops::MixItems{}, {graph.top_diff(0), SavedMix(graph)}, {graph.bottom_diff(0)});
    } else {
      graph.SetBottomDiff(0, graph.top_diff(0));
    }
  }

  // Labels get no gradient.
  bool AllowForceBackward(int bottom) const override { return bottom == 0; }

 private:
  bool mixes() const { return phase() == TRAIN && options_.prob() > 0; }
  bool cuts() const { return mixes() && options_.cutmix_prob() > 0; }
  static Value* SavedMix(GraphBuilder& graph) {
    return graph.Saved("mix", Shape{ops::Mix::kNumbers});
  }

  const MixupParameter options_;
};

REGISTER_LAYER_CLASS(Mixup);

}  // namespace
}  // namespace caffe
