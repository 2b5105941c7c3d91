#include <algorithm>

#include "caffe/core/saturating_product.hpp"
#include "caffe/io/detection_files.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/detection_blobs.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

// From codes, scores and prior boxes to detections: rows of (item, label, score, xmin, ymin, xmax,
// ymax), as many as there are. Bottoms: loc (N, priors x 4), conf (N, priors x classes), priors.
class DetectionOutputLayer final : public Layer {
 public:
  explicit DetectionOutputLayer(const LayerParameter& param)
      : Layer(param), options_(param.detection_output_param()) {
    Require(options_.has_num_classes(), "detection_output_param { num_classes } is missing");
    Require(options_.nms_param().nms_threshold() >= 0, "nms_threshold is ",
            options_.nms_param().nms_threshold(), "; it must not be negative");
    Require(options_.nms_param().eta() > 0 && options_.nms_param().eta() <= 1, "eta is ",
            options_.nms_param().eta(), "; it must be above 0 and at most 1");
    if (options_.visualize()) {
      throw Unsupported("visualize: there is no window here; read the top instead");
    }
    if (!options_.save_output_param().output_directory().empty()) {
      files_ = std::make_shared<DetectionFiles>(options_.save_output_param(),
                                                options_.background_label_id());
    }
  }

  LayerTraits traits() const override {
    return {.num_bottoms = 3, .num_tops = 1, .has_backward = false};
  }

  // Until data has been seen, one detection is taken to be there.
  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const int64_t priors = bottoms[2].count() / 8;
    const int64_t locations = options_.share_location() ? 1 : options_.num_classes();
    const int64_t codes = SaturatingProduct({priors, locations, 4});
    Require(bottoms[0].count(1) == codes, "bottom 0 has shape ", bottoms[0], "; ", priors,
            " prior boxes need ", codes, " numbers per item");
    Require(bottoms[1].count(1) == priors * options_.num_classes(), "bottom 1 has shape ",
            bottoms[1], "; ", priors, " prior boxes of ", options_.num_classes(), " classes need ",
            priors * options_.num_classes(), " scores per item");
    return {Shape{1, 1, 1, kDetectionColumns}};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::HostCall{.what = "detections",
                             .call =
                                 [options = options_, files = files_](const KernelContext& ctx) {
                                   return Run(options, files.get(), ctx);
                                 }},
               {graph.bottom(0), graph.bottom(1), graph.bottom(2)}, {graph.top(0)});
  }

 private:
  // The top's shape where it is not as planned.
  static std::vector<Shape> Run(const DetectionOutputParameter& options, DetectionFiles* files,
                                const KernelContext& ctx) {
    const std::vector<double> loc = ValuesOf(ctx.input(0)), conf = ValuesOf(ctx.input(1));
    const PriorBoxes priors(ValuesOf(ctx.input(2)));
    const int64_t items = ctx.input(0).shape[0];
    std::vector<std::vector<Detection>> detections(items);
    for (int64_t item = 0; item < items; ++item) {
      detections[item] = Detect(options, priors, loc, conf, item);
    }
    std::vector<Shape> changed = StoreDetections(detections, ctx);
    if (changed.empty() && files != nullptr) Save(detections, files);
    return changed;
  }

  static void Save(const std::vector<std::vector<Detection>>& detections, DetectionFiles* files) {
    std::vector<DetectionFiles::Detection> image;
    for (const std::vector<Detection>& item : detections) {
      image.clear();
      for (const auto& [label, score, box] : item) {
        image.push_back({label, score, {box.xmin, box.ymin, box.xmax, box.ymax}});
      }
      files->AddImage(image);
    }
  }

  static std::vector<Detection> Detect(const DetectionOutputParameter& options,
                                       const PriorBoxes& priors, const std::vector<double>& loc,
                                       const std::vector<double>& conf, int64_t item) {
    const int classes = static_cast<int>(options.num_classes());
    const int locations = options.share_location() ? 1 : classes;
    const size_t count = priors.boxes.size();
    const NonMaximumSuppressionParameter& nms = options.nms_param();
    std::vector<Detection> detections;
    std::vector<ops::Box> boxes(count);
    for (int label = 0; label < classes; ++label) {
      if (label == options.background_label_id()) continue;
      const int slot = options.share_location() ? 0 : label;
      std::vector<ops::ScoredBox> candidates;
      for (size_t i = 0; i < count; ++i) {
        const double score = conf[(item * count + i) * classes + label];
        if (score > options.confidence_threshold())
          candidates.push_back({score, static_cast<int64_t>(i)});
      }
      ops::KeepBest(&candidates, nms.has_top_k() ? nms.top_k() : -1);
      for (const ops::ScoredBox& candidate : candidates) {
        const auto i = static_cast<size_t>(candidate.index);
        boxes[i] = ops::Decode(CodesAt(loc, (item * count + i) * locations + slot), priors.boxes[i],
                               priors.variances[i], static_cast<ops::BoxCode>(options.code_type()),
                               !options.variance_encoded_in_target());
      }
      for (const ops::ScoredBox& kept :
           ops::Suppress(candidates, boxes, nms.nms_threshold(), nms.eta())) {
        detections.push_back({label, kept.score, boxes[kept.index]});
      }
    }
    const int keep = options.keep_top_k();
    if (keep >= 0 && static_cast<size_t>(keep) < detections.size()) {
      std::stable_sort(detections.begin(), detections.end(),
                       [](const Detection& a, const Detection& b) { return a.score > b.score; });
      detections.resize(keep);
      std::stable_sort(detections.begin(), detections.end(),
                       [](const Detection& a, const Detection& b) { return a.label < b.label; });
    }
    return detections;
  }

  const DetectionOutputParameter options_;
  std::shared_ptr<DetectionFiles> files_;  // null: none are written
};

REGISTER_LAYER_CLASS(DetectionOutput);

}  // namespace
}  // namespace caffe
