#include "caffe/detection_score.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/solver.hpp"
#include "tests/support/error_text.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;

void Add(DetectionScore* score, const std::vector<std::vector<float>>& rows) {
  Blob blob(Shape{1, 1, static_cast<int64_t>(rows.size()), static_cast<int64_t>(rows[0].size())});
  float* out = blob.mutable_cpu_data();
  for (const auto& row : rows) out = std::copy(row.begin(), row.end(), out);
  score->Add(blob);
}

// Class 1: four objects; ordered by score true, false, true, true: precision 1, 1/2, 2/3, 3/4 at
// recall 1/4, 1/4, 1/2, 3/4. Class 2: one object and nothing found.
DetectionScore Example(const std::string& version) {
  DetectionScore score(version);
  Add(&score, {{-1, 1, 3, -1, -1}, {-1, 2, 1, -1, -1}, {0, 1, 0.9f, 1, 0}, {1, 1, 0.6f, 1, 0}});
  Add(&score, {{-1, 1, 1, -1, -1},
               {-1, 2, 0, -1, -1},
               {0, 1, 0.7f, 1, 0},
               {0, 1, 0.8f, 0, 1},
               {1, 1, 0.95f, 0, 0}});  // difficult: does not count
  return score;
}

double First(const std::string& version) {
  return Example(version).AveragePrecisions().at(0).second;
}

TEST(DetectionScoreTest, HasThreeVersions) {
  EXPECT_DOUBLE_EQ(First("Integral"), 0.25 * (1 + 2.0 / 3 + 0.75));
  EXPECT_DOUBLE_EQ(First("MaxIntegral"), 0.25 * (1 + 0.75 + 0.75));
  // Recall 0, 0.1 and 0.2 have precision 1; 0.3 to 0.7 have 3/4; the rest is not reached.
  EXPECT_DOUBLE_EQ(First("11point"), (3 * 1 + 5 * 0.75) / 11);
}

TEST(DetectionScoreTest, TakesTheMeanOverClasses) {
  const DetectionScore score = Example("Integral");
  EXPECT_EQ(score.AveragePrecisions().size(), 2u);
  EXPECT_EQ(score.AveragePrecisions()[1].second, 0);
  EXPECT_DOUBLE_EQ(score.MeanAveragePrecision(), First("Integral") / 2);
  EXPECT_EQ(DetectionScore("Integral").MeanAveragePrecision(), 0);
}

TEST(DetectionScoreTest, ExplainsWhatItNeeds) {
  EXPECT_THAT(ErrorText<InvalidArgument>([] { DetectionScore("12point"); }),
              HasSubstr("'12point'; use 11point"));
  DetectionScore score("Integral");
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { Add(&score, {{1, 2}}); }), HasSubstr("1x1x1x2"));
}

// A solver whose test net compares one fixed detection with one fixed object.
TEST(DetectionScoreTest, SolversLogIt) {
  SolverParameter param;
  ParseTextProto(R"(
    base_lr: 0.1 lr_policy: "fixed" max_iter: 1 test_iter: 2 test_interval: 1
    eval_type: "detection" ap_version: "11point" show_per_class_result: true
    snapshot_after_train: false
    net_param {
      layer { name: "x" type: "DummyData" top: "x" top: "t" include { phase: TRAIN }
        dummy_data_param { shape { dim: 1 dim: 1 } shape { dim: 1 dim: 1 } } }
      layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y" include { phase: TRAIN }
        inner_product_param { num_output: 1 } }
      layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss"
        include { phase: TRAIN } }
      layer { name: "detections" type: "DummyData" top: "detections" include { phase: TEST }
        dummy_data_param { shape { dim: 1 dim: 1 dim: 1 dim: 7 } data_filler { value: 1 } } }
      layer { name: "truth" type: "DummyData" top: "truth" include { phase: TEST }
        dummy_data_param { shape { dim: 1 dim: 1 dim: 1 dim: 8 } data_filler { value: 1 } } }
      layer { name: "eval" type: "DetectionEvaluate" bottom: "detections" bottom: "truth"
        top: "detection_eval" include { phase: TEST }
        detection_evaluate_param { num_classes: 3 background_label_id: 0 } } })",
                 "test", &param);
  ::testing::internal::CaptureStderr();
  Solver solver(param, {.keep_all = false});
  solver.TestAll();
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("] class AP 1: "));
  EXPECT_THAT(log, HasSubstr("] class AP 2: 0\n"));
  EXPECT_THAT(log, HasSubstr("    Test net output mAP #0: detection_eval = "));
}

TEST(DetectionScoreTest, AScoreThatIsNaNFindsNothing) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  DetectionScore score("Integral");
  Add(&score, {{-1, 1, 2, -1, -1}, {0, 1, nan, 1, 0}, {0, 1, 0.5f, 1, 0}});
  EXPECT_EQ(score.MeanAveragePrecision(), 0.5);
}

}  // namespace
}  // namespace caffe
