#include <algorithm>

#include "caffe/core/parallel_for.hpp"
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
    files_ = MakeDetectionFiles(options_.save_output_param(), options_.background_label_id());
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
    const Predictions predictions(ctx);
    const int64_t items = ctx.input(0).shape[0];
    const auto classes = static_cast<int64_t>(options.num_classes());
    // Of each item and label, so that threads have something to share where there is one item.
    std::vector<std::vector<Detection>> found(items * classes);
    ParallelFor(items * classes, 1, [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t item = begin / classes, last = std::min(end, (item + 1) * classes);
        DetectLabels(options, predictions, item, {begin - item * classes, last - item * classes},
                     &found[item * classes]);
        begin = last;
      }
    });
    std::vector<std::vector<Detection>> detections(items);
    for (int64_t i = 0; i < items * classes; ++i) {
      std::vector<Detection>& all = detections[i / classes];
      all.insert(all.end(), found[i].begin(), found[i].end());
    }
    for (std::vector<Detection>& item : detections) KeepBest(options.keep_top_k(), &item);
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

  struct Predictions {
    Elements loc, conf, priors;
    int64_t count;  // of priors; their boxes come before their variances

    explicit Predictions(const KernelContext& ctx)
        : loc(ctx.input(0)),
          conf(ctx.input(1)),
          priors(ctx.input(2)),
          count(ctx.input(2).count() / 8) {}
  };
  struct Labels {
    int64_t first, last;
  };

  // found[label] for some labels of an item.
  static void DetectLabels(const DetectionOutputParameter& options, const Predictions& predictions,
                           int64_t item, const Labels& labels, std::vector<Detection>* found) {
    const auto classes = static_cast<int64_t>(options.num_classes());
    const auto background = static_cast<int64_t>(options.background_label_id());
    const double threshold = options.confidence_threshold();
    const NonMaximumSuppressionParameter& nms = options.nms_param();
    // Kept from call to call: to get them anew from the system takes as long as the rest.
    static thread_local std::vector<std::vector<ops::ScoredBox>> candidates;
    static thread_local std::vector<ops::Box> boxes;
    candidates.resize(std::max(candidates.size(), static_cast<size_t>(labels.last - labels.first)));
    for (std::vector<ops::ScoredBox>& one : candidates) one.clear();
    boxes.resize(predictions.count);
    // In the order of memory, which is that of priors.
    for (int64_t i = 0; i < predictions.count; ++i) {
      const int64_t scores = (item * predictions.count + i) * classes;
      for (int64_t label = labels.first; label < labels.last; ++label) {
        const double score = predictions.conf[scores + label];
        if (label != background && score > threshold)
          candidates[label - labels.first].push_back({score, i});
      }
    }
    for (int64_t label = labels.first; label < labels.last; ++label) {
      std::vector<ops::ScoredBox>& best = candidates[label - labels.first];
      ops::KeepBest(&best, nms.has_top_k() ? nms.top_k() : -1);
      for (const ops::ScoredBox& candidate : best)
        boxes[candidate.index] = BoxOf(options, predictions, item, candidate.index, label);
      for (const ops::ScoredBox& kept :
           ops::Suppress(best, boxes, nms.nms_threshold(), nms.eta())) {
        found[label].push_back({static_cast<int>(label), kept.score, boxes[kept.index]});
      }
    }
  }

  static ops::Box BoxOf(const DetectionOutputParameter& options, const Predictions& predictions,
                        int64_t item, int64_t prior, int64_t label) {
    const bool shares = options.share_location();
    const auto locations = shares ? 1 : static_cast<int64_t>(options.num_classes());
    const int64_t place = (item * predictions.count + prior) * locations + (shares ? 0 : label);
    const auto [xmin, ymin, xmax, ymax] = predictions.priors.Four(prior);
    return ops::Decode(predictions.loc.Four(place), {xmin, ymin, xmax, ymax},
                       predictions.priors.Four(predictions.count + prior),
                       static_cast<ops::BoxCode>(options.code_type()),
                       !options.variance_encoded_in_target());
  }

  // The best of an item, in the order of their labels.
  static void KeepBest(int keep, std::vector<Detection>* detections) {
    if (keep < 0 || static_cast<size_t>(keep) >= detections->size()) return;
    std::stable_sort(detections->begin(), detections->end(),
                     [](const Detection& a, const Detection& b) { return a.score > b.score; });
    detections->resize(keep);
    std::stable_sort(detections->begin(), detections->end(),
                     [](const Detection& a, const Detection& b) { return a.label < b.label; });
  }

  const DetectionOutputParameter options_;
  std::shared_ptr<DetectionFiles> files_;  // null: none are written
};

REGISTER_LAYER_CLASS(DetectionOutput);

}  // namespace
}  // namespace caffe
