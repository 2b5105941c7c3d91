// caffe test_detection: computes the mean average precision of nets with DetectionEvaluate layers.
#include <glog/logging.h>

#include "caffe/detection_score.hpp"
#include "tools/caffe/score_nets.hpp"

namespace caffe::tools {
namespace {

class TestDetection : public ScoreCommand {
 public:
  explicit TestDetection(CLI::App& app) : ScoreCommand(app) {
    app.add_option("--ap_version", ap_version_, "How precision is averaged over recall")
        ->type_name("11point|MaxIntegral|Integral");
    app.add_flag("--show_per_class_result", shows_classes_,
                 "Show the precision of each class (the default; "
                 "--noshow_per_class_result does not)");
  }

 private:
  void Score(Net& net, JsonObject* result) override {
    std::vector<DetectionScore> scores(net.output_blobs().size(), DetectionScore(ap_version_));
    for (int i = 0; i < iterations(); ++i) {
      net.Forward();
      for (size_t k = 0; k < scores.size(); ++k) scores[k].Add(*net.output_blobs()[k]);
    }
    for (size_t k = 0; k < scores.size(); ++k) {
      JsonObject* output = AddJson(result, "outputs");
      PutJson(output, "name", net.output_names()[k]);
      PutJson(output, "mean_average_precision", scores[k].MeanAveragePrecision());
      if (shows_classes_) ReportClasses(scores[k], output);
      LOG(INFO) << "Test net output mAP #" << k << ": " << net.output_names()[k] << " = "
                << scores[k].MeanAveragePrecision();
    }
  }

  static void ReportClasses(const DetectionScore& score, JsonObject* output) {
    for (const auto& [label, precision] : score.AveragePrecisions()) {
      LOG(INFO) << "class AP " << label << ": " << precision;
      JsonObject* of_class = AddJson(output, "classes");
      PutJson(of_class, "label", label);
      PutJson(of_class, "average_precision", precision);
    }
  }

  std::string ap_version_ = "11point";
  bool shows_classes_ = true;
};

const CommandRegistrar<TestDetection> test_detection_registrar(
    "test_detection",
    {.purpose = Purpose::kUse,
     .summary = "score a detector: mean average precision",
     .about = "Runs batches of TEST data through a net that ends in DetectionEvaluate layers and "
              "prints the mean average precision of its detections.",
     .examples = "caffe test_detection test.prototxt --weights=ssd.caffemodel --iterations=619\n"
                 "caffe test_detection test.prototxt --weights=ssd.caffemodel "
                 "--ap_version=Integral"});

}  // namespace
}  // namespace caffe::tools
