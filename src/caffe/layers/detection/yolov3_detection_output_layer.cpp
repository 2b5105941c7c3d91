#include "caffe/core/for_each_item.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/detection/yolo_head.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

// Detections of YOLO 3 (Redmon and Farhadi 2018), as rows of DetectionOutput; class c has label c +
// 1. Each class of a box has its own score. Bottoms: maps (N, boxes x (5 + classes), H, W) of
// several sizes.
class Yolov3DetectionOutputLayer final : public Layer {
 public:
  explicit Yolov3DetectionOutputLayer(const LayerParameter& param)
      : Layer(param), options_(param.yolov3_detection_output_param()) {
    Require(options_.has_num_classes() && options_.num_classes() > 0,
            "yolov3_detection_output_param { num_classes } is missing or 0");
    const int64_t maps = options_.mask_group_num();
    Require(maps > 0 && options_.anchors_scale_size() == maps, "there are ",
            options_.anchors_scale_size(), " anchors_scale; mask_group_num ", maps,
            " needs one for each bottom");
    const int64_t masks = SaturatingProduct({maps, options_.num_box()});
    Require(options_.mask_size() == masks, "there are ", options_.mask_size(), " masks; ", maps,
            " bottoms (mask_group_num) of ", options_.num_box(), " boxes (num_box) need ", masks);
    for (const uint32_t anchor : options_.mask()) {
      Require(2 * int64_t{anchor} + 1 < options_.biases_size(), "mask ", anchor,
              " names an anchor that the ", options_.biases_size(),
              " biases do not have; an anchor is a width and a height");
    }
  }

  LayerTraits traits() const override {
    return {.num_bottoms = static_cast<int>(options_.mask_group_num()),
            .num_tops = 1,
            .has_backward = false};
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
  static std::vector<Shape> Run(const Yolov3DetectionOutputParameter& options,
                                const KernelContext& ctx) {
    std::vector<std::vector<Detection>> detections(ctx.input(0).shape[0]);
    std::vector<YoloHead> heads;
    heads.reserve(ctx.inputs.size());
    for (const TensorView& map : ctx.inputs)
      heads.emplace_back(map, options.num_box(), options.num_classes());
    ForEachItem(ctx.input(0).shape[0], [&](int64_t item) {
      std::vector<Detection> found;
      for (size_t map = 0; map < heads.size(); ++map)
        AddDetections(options, static_cast<int>(map), heads[map], item, &found);
      detections[item] = SuppressDetections(found, options.nms_threshold());
    });
    return StoreDetections(detections, ctx);
  }

  static void AddDetections(const Yolov3DetectionOutputParameter& options, int map,
                            const YoloHead& head, int64_t item,
                            std::vector<Detection>* detections) {
    const int boxes = static_cast<int>(options.num_box());
    const double pixels = options.anchors_scale(map);
    const double width = pixels * static_cast<double>(head.width());
    const double height = pixels * static_cast<double>(head.height());
    head.ForEachBox([&](int64_t box, int64_t place) {
      const double object = head.ObjectAt(item, box, place);
      // No class has a probability above 1. Comparisons with NaN are false.
      if (!(object > options.confidence_threshold())) return;
      const int anchor = static_cast<int>(options.mask(map * boxes + static_cast<int>(box)));
      const ops::Box at = head.BoxAt(item, box, place, options.biases(2 * anchor) / width,
                                     options.biases(2 * anchor + 1) / height);
      if (!IsFinite(at)) return;
      for (int label = 0; label < static_cast<int>(options.num_classes()); ++label) {
        const double score = object * YoloHead::Sigmoid(head.ClassAt(item, box, place, label));
        if (!(score > options.confidence_threshold())) continue;
        detections->push_back({label + 1, score, at});
      }
    });
  }

  const Yolov3DetectionOutputParameter options_;
};

REGISTER_LAYER_CLASS(Yolov3DetectionOutput);

}  // namespace
}  // namespace caffe
