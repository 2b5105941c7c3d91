#include <algorithm>

#include "caffe/layer_factory.hpp"
#include "caffe/layers/detection_blobs.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

// Compares detections (bottom 0, rows of 7) with the ground truth (bottom 1, rows of 8). First
// rows:
// (-1, label, number of objects, -1, -1) for each class; then one for each detection: (item, label,
// score, true positive, false positive).
class DetectionEvaluateLayer final : public Layer {
 public:
  explicit DetectionEvaluateLayer(const LayerParameter& param)
      : Layer(param), options_(param.detection_evaluate_param()) {
    Require(options_.has_num_classes(), "detection_evaluate_param { num_classes } is missing");
    Require(options_.overlap_threshold() > 0, "overlap_threshold is ", options_.overlap_threshold(),
            "; it must be positive");
    if (!options_.name_size_file().empty()) {
      throw Unsupported(
          "name_size_file is not available; boxes are compared in units of the image");
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
                             .call = [options = options_](
                                         const KernelContext& ctx) { Run(options, ctx); }},
               {graph.bottom(0), graph.bottom(1)}, {graph.top(0)});
  }

 private:
  struct Detection {
    double score;
    ops::Box box;
  };

  static void Run(const DetectionEvaluateParameter& options, const KernelContext& ctx) {
    const auto truths = GroundTruths(ValuesOf(ctx.input(1)));
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
    std::map<int, std::map<int, std::vector<Detection>>> detections;  // by item and label
    for (size_t i = 0; i + 7 <= found.size(); i += 7) {
      const double* row = &found[i];
      if (row[1] < 0) continue;  // an item without detections
      detections[static_cast<int>(row[0])][static_cast<int>(row[1])].push_back(
          {row[2], {row[3], row[4], row[5], row[6]}});
    }
    for (auto& [item, labels] : detections) {
      const auto truth = truths.find(item);
      for (auto& [label, list] : labels) {
        Judge(options, item, label, list,
              truth == truths.end() ? std::vector<GroundTruth>() : truth->second, &rows);
      }
    }
    const Shape shape{1, 1, static_cast<int64_t>(rows.size()) / 5, 5};
    if (!(ctx.output(0).shape == shape)) throw ops::TopShapesDiffer{{shape}};
    CopyTensor({{shape, DType::kDouble, Layout::kPlain}, rows.data()}, ctx.output(0));
  }

  // Best detections first; each object is found once.
  static void Judge(const DetectionEvaluateParameter& options, int item, int label,
                    std::vector<Detection>& list, const std::vector<GroundTruth>& truths,
                    std::vector<double>* rows) {
    std::stable_sort(list.begin(), list.end(),
                     [](const Detection& a, const Detection& b) { return a.score > b.score; });
    std::vector<bool> is_taken(truths.size(), false);
    for (const Detection& one : list) {
      const ops::Box box = one.box.Clipped();
      double best = -1;
      size_t match = 0;
      for (size_t i = 0; i < truths.size(); ++i) {
        if (truths[i].label != label) continue;
        const double overlap = ops::Overlap(box, truths[i].box);
        if (overlap > best) best = overlap, match = i;
      }
      double right = 0, wrong = 1;
      if (best >= options.overlap_threshold()) {
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
};

REGISTER_LAYER_CLASS(DetectionEvaluate);

}  // namespace
}  // namespace caffe
