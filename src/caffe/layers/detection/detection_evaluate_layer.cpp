#include <algorithm>
#include <cmath>
#include <memory>

#include "caffe/io/image_sizes.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/detection/detection_blobs.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

// Compares detections (bottom 0, rows of 7) with the ground truth (bottom 1, rows of 8). The top
// starts with a row (-1, label, number of objects, -1, -1) per class, followed by a row per
// detection: (item, label, score, true positive, false positive).
class DetectionEvaluateLayer final : public Layer {
 public:
  explicit DetectionEvaluateLayer(const LayerParameter& param)
      : Layer(param), options_(param.detection_evaluate_param()) {
    Require(options_.has_num_classes(), "detection_evaluate_param { num_classes } is missing");
    Require(options_.overlap_threshold() > 0, "overlap_threshold is ", options_.overlap_threshold(),
            "; it must be positive");
    if (!options_.name_size_file().empty()) {
      images_ = std::make_shared<TestImages>(ReadImageSizes(options_.name_size_file()));
    }
  }

  LayerTraits traits() const override {
    return {.num_bottoms = 2, .num_tops = 1, .has_backward = false};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    Require(bottoms[0].num_axes() == 4 && bottoms[0][3] == 7, "bottom 0 has shape ", bottoms[0],
            "; detections are rows of 7");
    Require(bottoms[1].num_axes() == 4 && bottoms[1][3] == 8, "bottom 1 has shape ", bottoms[1],
            "; the ground truth is rows of 8");
    return {Shape{1, 1, static_cast<int64_t>(options_.num_classes()) - 1 + bottoms[0][2], 5}};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::HostCall{.what = "evaluate detections",
                             .call =
                                 [options = options_, images = images_](const KernelContext& ctx) {
                                   return Run(options, images.get(), ctx);
                                 }},
               {graph.bottom(0), graph.bottom(1)}, {graph.top(0)});
  }

 private:
  struct Detection {
    double score;
    ops::Box box;
  };

  // The images listed in name_size_file, batch after batch; starts over after the last.
  struct TestImages {
    explicit TestImages(std::vector<NamedImageSize> all) : sizes(std::move(all)) {}

    const NamedImageSize& at(int item) const { return sizes[(next + item) % sizes.size()]; }

    std::vector<NamedImageSize> sizes;
    size_t next = 0;  // first image of the next batch
  };

  // Returns the top's shape if it differs from the planned one.
  static std::vector<Shape> Run(const DetectionEvaluateParameter& options, TestImages* images,
                                const KernelContext& ctx) {
    auto truths = GroundTruths(ValuesOf(ctx.input(1)));
    const std::vector<double> found = ValuesOf(ctx.input(0));
    std::vector<double> rows;
    for (int label = 0; label < static_cast<int>(options.num_classes()); ++label) {
      if (label == static_cast<int>(options.background_label_id())) continue;
      int objects = 0;
      for (const auto& [item, list] : truths) {
        objects += static_cast<int>(std::count_if(list.begin(), list.end(), [&](const auto& one) {
          return one.label == label && (options.evaluate_difficult_gt() || !one.is_difficult);
        }));
      }
      rows.insert(rows.end(),
                  {-1, static_cast<double>(label), static_cast<double>(objects), -1, -1});
    }
    // The bottoms do not contain the number of images in the batch: assume that it ends with the
    // last image that has an object or a detection.
    int items = truths.empty() ? 0 : truths.rbegin()->first + 1;
    std::map<int, std::map<int, std::vector<Detection>>> detections;  // by item and label
    for (size_t i = 0; i + 7 <= found.size(); i += 7) {
      const double* row = &found[i];
      items = std::max(items, static_cast<int>(row[0]) + 1);
      if (row[1] < 0) continue;  // an item without detections
      detections[static_cast<int>(row[0])][static_cast<int>(row[1])].push_back(
          {row[2], {row[3], row[4], row[5], row[6]}});
    }
    if (images != nullptr) {
      ToPixels(*images, options.resize_param(), &truths, &detections);
    }
    const bool is_in_pixels = images != nullptr;
    for (auto& [item, labels] : detections) {
      const auto truth = truths.find(item);
      for (auto& [label, list] : labels) {
        Judge(options, item, label, list,
              truth == truths.end() ? std::vector<GroundTruth>() : truth->second, is_in_pixels,
              &rows);
      }
    }
    const Shape shape{1, 1, static_cast<int64_t>(rows.size()) / 5, 5};
    if (!(ctx.output(0).shape == shape)) return {shape};
    CopyTensor({{shape, DType::kDouble, Layout::kPlain}, rows.data()}, ctx.output(0));
    if (images != nullptr) images->next = (images->next + items) % images->sizes.size();
    return {};
  }

  static void ToPixels(const TestImages& images, const ResizeParameter& resize,
                       std::map<int, std::vector<GroundTruth>>* truths,
                       std::map<int, std::map<int, std::vector<Detection>>>* detections) {
    const auto convert = [&](int item, ops::Box* box) {
      const auto [xmin, ymin, xmax, ymax] =
          InPixels({box->xmin, box->ymin, box->xmax, box->ymax}, images.at(item), resize);
      *box = {xmin, ymin, xmax, ymax};
    };
    for (auto& [item, list] : *truths) {
      for (GroundTruth& one : list) convert(item, &one.box);
    }
    for (auto& [item, labels] : *detections) {
      for (auto& [label, list] : labels) {
        for (Detection& one : list) convert(item, &one.box);
      }
    }
  }

  // Intersection over union in which a box from pixel 3 to pixel 5 is three pixels wide, as in
  // VOC's tools.
  static double OverlapInPixels(const ops::Box& a, const ops::Box& b) {
    const auto counted = [](const ops::Box& box) {
      return ops::Box{box.xmin, box.ymin, box.xmax + 1, box.ymax + 1};
    };
    // Boxes that touch only because of the added pixel do not overlap.
    if (a.xmax < b.xmin || b.xmax < a.xmin || a.ymax < b.ymin || b.ymax < a.ymin) return 0;
    return ops::Overlap(counted(a), counted(b));
  }

  // Processes the best detections first; each object is matched once, and never by a box with a NaN
  // score.
  static void Judge(const DetectionEvaluateParameter& options, int item, int label,
                    std::vector<Detection>& list, const std::vector<GroundTruth>& truths,
                    bool is_in_pixels, std::vector<double>* rows) {
    std::stable_sort(list.begin(), list.end(), [](const Detection& a, const Detection& b) {
      return ops::ScoreRank(a.score) > ops::ScoreRank(b.score);
    });
    std::vector<bool> is_taken(truths.size(), false);
    for (const Detection& one : list) {
      const ops::Box box = is_in_pixels ? one.box : one.box.Clipped();
      double best = -1;
      size_t match = 0;
      for (size_t i = 0; i < truths.size(); ++i) {
        if (truths[i].label != label) continue;
        const double overlap =
            is_in_pixels ? OverlapInPixels(box, truths[i].box) : ops::Overlap(box, truths[i].box);
        if (overlap > best) best = overlap, match = i;
      }
      double right = 0, wrong = 1;
      if (best >= options.overlap_threshold() && !std::isnan(one.score)) {
        const bool counts = options.evaluate_difficult_gt() || !truths[match].is_difficult;
        right = counts && !is_taken[match] ? 1.0 : 0.0;
        wrong = counts && is_taken[match] ? 1.0 : 0.0;
        is_taken[match] = is_taken[match] || counts;
      }
      rows->insert(rows->end(), {static_cast<double>(item), static_cast<double>(label), one.score,
                                 right, wrong});
    }
  }

  const DetectionEvaluateParameter options_;
  std::shared_ptr<TestImages> images_;  // null: boxes are compared in relative coordinates
};

REGISTER_LAYER_CLASS(DetectionEvaluate);

}  // namespace
}  // namespace caffe
