#include <algorithm>
#include <map>
#include <numeric>

#include "caffe/layer_factory.hpp"
#include "caffe/layers/detection/detection_blobs.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

// Keeps the boxes of each image with the largest losses (Shrivastava et al. 2016, "Training
// region-based object detectors with online hard example mining"): for all others, labels become
// ignore_label and the weights of their offsets 0. Bottoms: boxes (R,5,H,W), losses and labels
// (R,1,H,W), weights (R,K,H,W). Tops: labels, weights.
class BoxAnnotatorOHEMLayer final : public Layer {
 public:
  explicit BoxAnnotatorOHEMLayer(const LayerParameter& param)
      : Layer(param), options_(param.box_annotator_ohem_param()) {
    Require(options_.roi_per_img() > 0, "roi_per_img is ", options_.roi_per_img(),
            "; set box_annotator_ohem_param { roi_per_img } to at least 1");
  }

  LayerTraits traits() const override {
    return {.num_bottoms = 4, .num_tops = 2, .has_backward = false};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape &boxes = bottoms[0], &weights = bottoms[3];
    Require(boxes.num_axes() >= 2 && boxes[1] == 5, "bottom 0 has shape ", boxes,
            "; boxes are rows of 5 (item, x1, y1, x2, y2)");
    const int64_t count = boxes[0] * boxes.count(2);
    Require(bottoms[1].count() == count && bottoms[2].count() == count,
            "bottoms 1 and 2 have shapes ", bottoms[1], " and ", bottoms[2],
            "; they must hold a loss and a label for each of ", count, " boxes");
    Require(weights.num_axes() >= 2 && weights[0] == boxes[0] && weights.count(2) == boxes.count(2),
            "bottom 3 has shape ", weights, "; it must hold weights for each box of ", boxes);
    return {bottoms[2], weights};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(
        ops::HostCall{.what = "hard examples",
                      .call = [options = options_](const KernelContext& ctx) { Run(options, ctx); },
                      .rounded_inputs = {1}},
        {graph.bottom(0), graph.bottom(1), graph.bottom(2), graph.bottom(3)},
        {graph.top(0), graph.top(1)});
  }

 private:
  static void Run(const BoxAnnotatorOHEMParameter& options, const KernelContext& ctx) {
    const std::vector<double> boxes = ValuesOf(ctx.input(0)), losses = ValuesOf(ctx.input(1));
    std::vector<double> labels = ValuesOf(ctx.input(2)), weights = ValuesOf(ctx.input(3));
    const int64_t places = ctx.input(0).shape.count(2), channels = ctx.input(3).shape[1];
    std::vector<int64_t> order(losses.size());
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return Hardness(losses[a]) > Hardness(losses[b]);
    });
    std::map<double, uint32_t> kept;  // per image
    for (const int64_t box : order) {
      const int64_t row = box / places, place = box % places;
      if (kept[boxes[row * 5 * places + place]]++ < options.roi_per_img()) continue;
      labels[box] = options.ignore_label();
      for (int64_t k = 0; k < channels; ++k) weights[(row * channels + k) * places + place] = 0;
    }
    const auto store = [&](int output, std::vector<double>& values) {
      const TensorView& view = ctx.output(output);
      if (!ctx.has_output(output)) return;
      CopyTensor({{view.shape, DType::kDouble, Layout::kPlain}, values.data()}, view);
    };
    store(0, labels);
    store(1, weights);
  }

  const BoxAnnotatorOHEMParameter options_;
};

REGISTER_LAYER_CLASS(BoxAnnotatorOHEM);

}  // namespace
}  // namespace caffe
