// caffe test_detection: the mean average precision of nets that end in DetectionEvaluate layers.
#include <glog/logging.h>

#include "caffe/detection_score.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/flags.hpp"
#include "tools/caffe/score_nets.hpp"

DEFINE_string(ap_version, "11point", "Average precision of detection tests (test_detection).");
DEFINE_bool(show_per_class_result, true, "Show the precision of each class (test_detection).");

namespace caffe::tools {
namespace {

void LogMeanPrecision(Net& net) {
  std::vector<DetectionScore> scores(net.output_blobs().size(), DetectionScore(FLAGS_ap_version));
  for (int i = 0; i < FLAGS_iterations; ++i) {
    net.Forward();
    for (size_t k = 0; k < scores.size(); ++k) scores[k].Add(*net.output_blobs()[k]);
  }
  for (size_t k = 0; k < scores.size(); ++k) {
    if (FLAGS_show_per_class_result) {
      for (const auto& [label, precision] : scores[k].AveragePrecisions()) {
        LOG(INFO) << "class AP " << label << ": " << precision;
      }
    }
    LOG(INFO) << "Test net output mAP #" << k << ": " << net.output_names()[k] << " = "
              << scores[k].MeanAveragePrecision();
  }
}

const CommandRegistrar registrar("test_detection",
                                 {.help = "score a detector: mean average precision",
                                  .run = [](const std::string&) { ScoreNets(LogMeanPrecision); }});

}  // namespace
}  // namespace caffe::tools
