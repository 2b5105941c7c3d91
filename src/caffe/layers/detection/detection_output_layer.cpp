#include <limits>
#include <memory>

#include "caffe/core/saturating_product.hpp"
#include "caffe/io/detection_files.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/detection/detection_blobs.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/detect.hpp"

namespace caffe {
namespace {

// Converts codes, scores and prior boxes to detections: a variable number of rows (item, label,
// score, xmin, ymin, xmax, ymax). Bottoms: loc (N, priors x 4), conf (N, priors x classes), priors.
class DetectionOutputLayer final : public Layer {
 public:
  explicit DetectionOutputLayer(const LayerParameter& param)
      : Layer(param), options_(param.detection_output_param()) {
    Require(options_.has_num_classes(), "detection_output_param { num_classes } is missing");
    Require(options_.nms_param().nms_threshold() >= 0, "nms_threshold is ",
            options_.nms_param().nms_threshold(), "; it must not be negative");
    Require(options_.nms_param().eta() > 0 && options_.nms_param().eta() <= 1, "eta is ",
            options_.nms_param().eta(), "; it must be above 0 and at most 1");
    Require(options_.vote_threshold() >= 0 && options_.vote_threshold() <= 1, "vote_threshold is ",
            options_.vote_threshold(), "; it must be from 0 to 1");
    if (options_.visualize()) {
      throw Unsupported("visualize: there is no window here; read the top instead");
    }
    files_ = MakeDetectionFiles(options_.save_output_param(), options_.background_label_id());
  }

  LayerTraits traits() const override {
    return {.num_bottoms = 3, .num_tops = 1, .has_backward = false};
  }

  // Before data has been seen, assumes one detection.
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

  // A compiled program has no host calls and fixed shapes: its top has room for all rows.
  void EmitForward(GraphBuilder& graph) const override {
    const ops::DetectionOutput op = MakeOp();
    const double least_vote = options_.vote_threshold();
    const int64_t rows =
        op.MostRows(graph.shape(graph.bottom(0))[0], graph.shape(graph.bottom(2)).count() / 8);
    const Op in_programs = least_vote > 0 ? Op(ops::VotedDetectionOutput{op, least_vote}) : Op(op);
    graph.Emit(ops::HostCall{.what = "detections",
                             .call =
                                 [op, least_vote, files = files_](const KernelContext& ctx) {
                                   return Run(op, least_vote, files.get(), ctx);
                                 },
                             .in_programs = std::make_shared<const ops::FixedCall>(
                                 ops::FixedCall{in_programs, Shape{1, 1, rows, kDetectionColumns}}),
                             .rounded_inputs = {0}},
               {graph.bottom(0), graph.bottom(1), graph.bottom(2)}, {graph.top(0)});
  }

 private:
  ops::DetectionOutput MakeOp() const {
    const NonMaximumSuppressionParameter& nms = options_.nms_param();
    return {.classes = static_cast<int64_t>(options_.num_classes()),
            .background = options_.background_label_id(),
            .shares_location = options_.share_location(),
            .code = static_cast<ops::BoxCode>(options_.code_type()),
            .multiplies = !options_.variance_encoded_in_target(),
            .least_score = options_.has_confidence_threshold()
                               ? options_.confidence_threshold()
                               : std::numeric_limits<float>::lowest(),
            .top_k = nms.has_top_k() ? nms.top_k() : -1,
            .overlap = nms.nms_threshold(),
            .eta = nms.eta(),
            .keep_top_k = options_.keep_top_k()};
  }

  // Returns the top's shape if it differs from the planned one.
  static std::vector<Shape> Run(const ops::DetectionOutput& op, double least_vote,
                                DetectionFiles* files, const KernelContext& ctx) {
    const auto detections = ops::Detect(op, least_vote, ctx.input(0), ctx.input(1), ctx.input(2));
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

  const DetectionOutputParameter options_;
  std::shared_ptr<DetectionFiles> files_;  // null: no files are written
};

REGISTER_LAYER_CLASS(DetectionOutput);

}  // namespace
}  // namespace caffe
