#include "caffe/core/for_each_item.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/detection/yolo_head.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

// Detections of YOLO 2, as rows of DetectionOutput; class c has label c + 1. A box has one class,
// that with the largest softmax. Bottoms: maps (N, boxes x (5 + classes), H, W) of any sizes, whose
// anchors have the same widths and heights in cells.
class YoloDetectionOutputLayer final : public Layer {
 public:
  explicit YoloDetectionOutputLayer(const LayerParameter& param)
      : Layer(param), options_(param.yolo_detection_output_param()) {
    Require(options_.has_num_classes() && options_.num_classes() > 0,
            "yolo_detection_output_param { num_classes } is missing or 0");
    Require(options_.coords() == 4, "coords is ", options_.coords(), "; a box has 4");
    Require(options_.biases_size() == 2 * int64_t{options_.num_box()}, "there are ",
            options_.biases_size(), " biases; ", options_.num_box(),
            " boxes (num_box) need a width and a height each, in cells");
  }

  LayerTraits traits() const override {
    return {.min_bottoms = 1, .num_tops = 1, .has_backward = false};
  }

  // Before data has been seen, assumes one detection.
  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    YoloHead::RequireMaps(bottoms, options_.num_box(), options_.num_classes());
    return {Shape{1, 1, 1, kDetectionColumns}};
  }

  void EmitForward(GraphBuilder& graph) const override {
    std::vector<Value*> maps;
    for (int i = 0; i < graph.num_bottoms(); ++i) maps.push_back(graph.bottom(i));
    graph.Emit(ops::HostCall{.what = "detections",
                             .call = [options = options_](
                                         const KernelContext& ctx) { return Run(options, ctx); },
                             .rounded_inputs = OperandSet::All()},
               std::move(maps), {graph.top(0)});
  }

 private:
  static std::vector<Shape> Run(const YoloDetectionOutputParameter& options,
                                const KernelContext& ctx) {
    std::vector<std::vector<Detection>> detections(ctx.input(0).shape[0]);
    std::vector<YoloHead> heads;
    heads.reserve(ctx.inputs.size());
    for (const TensorView& map : ctx.inputs)
      heads.emplace_back(map, options.num_box(), options.num_classes());
    ForEachItem(ctx.input(0).shape[0], [&](int64_t item) {
      std::vector<Detection> found;
      for (const YoloHead& head : heads) AddDetections(options, head, item, &found);
      detections[item] = SuppressDetections(found, options.nms_threshold());
    });
    return StoreDetections(detections, ctx);
  }

  static void AddDetections(const YoloDetectionOutputParameter& options, const YoloHead& head,
                            int64_t item, std::vector<Detection>* detections) {
    head.ForEachBox([&](int64_t box, int64_t place) {
      const double object = head.ObjectAt(item, box, place);
      // No probability is above 1. Comparisons with NaN are false.
      if (!(object >= options.confidence_threshold())) return;
      const auto [label, probability] = BestClass(options, head, item, box, place);
      const double score = object * probability;
      if (!(score >= options.confidence_threshold())) return;
      const double width = options.biases(static_cast<int>(2 * box));
      const double height = options.biases(static_cast<int>(2 * box + 1));
      const ops::Box at = head.BoxAt(item, box, place, width / static_cast<double>(head.width()),
                                     height / static_cast<double>(head.height()));
      if (IsFinite(at)) detections->push_back({label + 1, score, at});
    });
  }

  static std::pair<int, double> BestClass(const YoloDetectionOutputParameter& options,
                                          const YoloHead& head, int64_t item, int64_t box,
                                          int64_t place) {
    const int classes = static_cast<int>(options.num_classes());
    int best = 0;
    for (int label = 1; label < classes; ++label) {
      if (head.ClassAt(item, box, place, label) > head.ClassAt(item, box, place, best))
        best = label;
    }
    double sum = 0;
    for (int label = 0; label < classes; ++label) {
      sum += std::exp(head.ClassAt(item, box, place, label) - head.ClassAt(item, box, place, best));
    }
    return {best, 1 / sum};
  }

  const YoloDetectionOutputParameter options_;
};

REGISTER_LAYER_CLASS(YoloDetectionOutput);

}  // namespace
}  // namespace caffe
