// YOLO's detections on small maps, computed by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "caffe/blob.hpp"
#include "caffe/error.hpp"
#include "caffe/net.hpp"
#include "tests/support/blob_values.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using ::testing::FloatNear;
using testing::Get;
using ::testing::HasSubstr;
using testing::NetOf;
using ::testing::Pointwise;

double Sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

// A map whose boxes detect nothing except where a test sets values.
class YoloMap {
 public:
  YoloMap(Net& net, const std::string& name, int classes)
      : blob_(*net.blob_by_name(name)), classes_(classes) {
    float* values = blob_.mutable_cpu_data<float>();
    std::fill(values, values + blob_.count(), -12.0f);
  }
  // x, y, w, h, object, classes
  void Set(int item, int box, int row, int column, const std::vector<float>& entries) {
    const Shape& shape = blob_.shape();
    for (size_t k = 0; k < entries.size(); ++k) {
      const int64_t channel = box * (5 + classes_) + static_cast<int64_t>(k);
      blob_.mutable_cpu_data<float>()[((item * shape[1] + channel) * shape[2] + row) * shape[3] +
                                      column] = entries[k];
    }
  }

 private:
  Blob& blob_;
  int classes_;
};

std::unique_ptr<Net> Yolo2(const std::string& options) {
  return NetOf(
      "layer { name: 'in' type: 'Input' top: 'map' input_param { shape { dim: 2 dim: 16 dim: 2 "
      "dim: "
      "4 } } } layer { name: 'd' type: 'YoloDetectionOutput' bottom: 'map' top: 'd' "
      "yolo_detection_output_param { " +
      options + " } }");
}

TEST(YoloTest, DecodesTheBestClassOfEachBox) {
  // Two boxes of 5 + 3 numbers, 4 x 2 cells.
  const auto net = Yolo2(
      "num_classes: 3 num_box: 2 confidence_threshold: 0.2 nms_threshold: 0.45 biases: 1 biases: "
      "0.5 "
      "biases: 2 biases: 1.5");
  YoloMap map(*net, "map", 3);
  const float log2 = std::log(2.0f);
  map.Set(0, 1, 1, 2, {0, 0, 0, 0, 3, 1, 2, 0});
  map.Set(0, 0, 1, 2, {0, 0, log2, log2, 2, 1, 2, 0});  // overlaps the other by 2/3: suppressed
  map.Set(1, 0, 0, 0, {1, -1, 0, log2, 4, 0, 0, 5});
  net->Forward();
  const double softmax = 1 / (1 + std::exp(-1.0) + std::exp(-2.0));
  const double x = Sigmoid(1) / 4, y = Sigmoid(-1) / 2;
  EXPECT_THAT(Get(*net, "d"),
              Pointwise(FloatNear(1e-5f),
                        std::vector<double>{0, 2, Sigmoid(3) * softmax, 2.5 / 4 - 0.25,
                                            1.5 / 2 - 0.375, 2.5 / 4 + 0.25, 1.5 / 2 + 0.375,  //
                                            1, 3, Sigmoid(4) / (1 + 2 * std::exp(-5.0)), x - 0.125,
                                            y - 0.25, x + 0.125, y + 0.25}));
  // Nothing is detected: one row for each item.
  YoloMap empty(*net, "map", 3);
  net->Forward();
  EXPECT_THAT(Get(*net, "d"),
              Pointwise(FloatNear(0),
                        std::vector<double>{0, -1, -1, -1, -1, -1, -1, 1, -1, -1, -1, -1, -1, -1}));
}

// MobileNet-YOLO's deploy.prototxt has a coarse and a fine map with the same anchors in cells.
TEST(YoloTest, SuppressesAmongTheDetectionsOfAllMaps) {
  const auto net = NetOf(
      "layer { name: 'in' type: 'Input' top: 'coarse' top: 'fine' input_param { shape { dim: 1 "
      "dim: 8 dim: 2 dim: 2 } shape { dim: 1 dim: 8 dim: 4 dim: 4 } } } layer { name: 'd' type: "
      "'YoloDetectionOutput' bottom: 'coarse' bottom: 'fine' top: 'd' yolo_detection_output_param "
      "{ "
      "num_classes: 3 num_box: 1 confidence_threshold: 0.3 biases: 1 biases: 1 } }");
  YoloMap coarse(*net, "coarse", 3), fine(*net, "fine", 3);
  const float log2 = std::log(2.0f);
  coarse.Set(0, 0, 0, 0, {0, 0, 0, 0, 3, 9, 0, 0});      // 0 to 0.5
  fine.Set(0, 0, 0, 0, {9, 9, log2, log2, 2, 9, 0, 0});  // the same box: suppressed
  fine.Set(0, 0, 3, 2, {0, 0, 0, 0, 4, 0, 0, 9});
  net->Forward();
  const double other = 1 / (1 + 2 * std::exp(-9.0));
  EXPECT_THAT(Get(*net, "d"),
              Pointwise(FloatNear(1e-3f),
                        std::vector<double>{0, 3, Sigmoid(4) * other, 0.5, 0.75, 0.75, 1,  //
                                            0, 1, Sigmoid(3) * other, 0, 0, 0.5, 0.5}));
}

std::unique_ptr<Net> Yolo3(const std::string& options) {
  return NetOf(
      "layer { name: 'in' type: 'Input' top: 'coarse' top: 'fine' input_param { shape { dim: 1 "
      "dim: "
      "14 dim: 2 dim: 2 } shape { dim: 1 dim: 14 dim: 4 dim: 4 } } } layer { name: 'd' type: "
      "'Yolov3DetectionOutput' bottom: 'coarse' bottom: 'fine' top: 'd' "
      "yolov3_detection_output_param { " +
      options + " } }");
}

TEST(YoloTest, ScoresEachClassOfEachMap) {
  // Images of 64 x 64 pixels; the fine map uses the first two anchors.
  const auto net = Yolo3(
      "num_classes: 2 num_box: 2 confidence_threshold: 0.3 nms_threshold: 0.5 anchors_scale: 32 "
      "anchors_scale: 16 mask_group_num: 2 mask: 2 mask: 3 mask: 0 mask: 1 biases: 4 biases: 8 "
      "biases: 16 biases: 8 biases: 32 biases: 16 biases: 48 biases: 64");
  YoloMap coarse(*net, "coarse", 2), fine(*net, "fine", 2);
  coarse.Set(0, 1, 0, 1, {0, 0, 0, 0, 2, 1, 3});  // the second class wins over the first
  fine.Set(0, 0, 3, 0, {0, 0, std::log(2.0f), 0, 5, 5, -5});
  net->Forward();
  EXPECT_THAT(
      Get(*net, "d"),
      Pointwise(FloatNear(1e-5f),
                std::vector<double>{0, 1, Sigmoid(5) * Sigmoid(5), 0.125 - 4 / 64.0,
                                    0.875 - 4 / 64.0, 0.125 + 4 / 64.0, 0.875 + 4 / 64.0,  //
                                    0, 2, Sigmoid(2) * Sigmoid(3), 0.75 - 24 / 64.0,
                                    0.25 - 32 / 64.0, 0.75 + 24 / 64.0, 0.25 + 32 / 64.0}));
}

const std::vector<std::vector<float>> kOddEntries = [] {
  const float nan = std::numeric_limits<float>::quiet_NaN(), huge = 1000;
  std::vector<std::vector<float>> all;
  for (int k = 0; k < 6; ++k) {
    all.push_back({0, 0, 0, 0, 5, 5, -5});
    all.back()[k] = nan;
  }
  all.push_back({0, 0, huge, 0, 5, 5, -5});  // e^1000
  all.push_back({0, 0, 0, 200, 5, 5, -5});   // beyond float
  return all;
}();

TEST(YoloTest, LeavesOutWhatIsNotFinite) {
  const auto yolo2 = Yolo2(
      "num_classes: 3 num_box: 2 confidence_threshold: 0.2 biases: 1 biases: 0.5 biases: 2 biases: "
      "1.5");
  const auto yolo3 = Yolo3(
      "num_classes: 2 num_box: 2 confidence_threshold: 0.3 anchors_scale: 32 anchors_scale: 16 "
      "mask_group_num: 2 mask: 0 mask: 1 mask: 0 mask: 1 biases: 4 biases: 8 biases: 16 biases: 8");
  for (const std::vector<float>& entries : kOddEntries) {
    YoloMap(*yolo2, "map", 3).Set(0, 0, 1, 2, entries);
    yolo2->Forward();
    EXPECT_EQ(Get(*yolo2, "d")[1], -1) << ::testing::PrintToString(entries);
    YoloMap(*yolo3, "coarse", 2).Set(0, 0, 1, 1, entries);
    YoloMap(*yolo3, "fine", 2);
    yolo3->Forward();
    EXPECT_EQ(Get(*yolo3, "d")[1], -1) << ::testing::PrintToString(entries);
  }
}

TEST(YoloTest, SaysWhatIsWrong) {
  const auto refuses = [](const std::function<void()>& build, const std::string& reason) {
    EXPECT_THAT(ErrorText<InvalidArgument>(build), HasSubstr(reason));
  };
  refuses([] { Yolo2(""); }, "num_classes } is missing");
  refuses([] { Yolo2("num_classes: 3 num_box: 2 biases: 1"); }, "there are 1 biases; 2 boxes");
  refuses([] { Yolo2("num_classes: 4 num_box: 1 biases: 1 biases: 1"); },
          "need a map with 9 channels");
  refuses([] { Yolo3("num_classes: 2 num_box: 2 anchors_scale: 32"); },
          "there are 1 anchors_scale; mask_group_num 2");
  refuses(
      [] {
        Yolo3(
            "num_classes: 2 num_box: 1 anchors_scale: 32 anchors_scale: 16 mask: 0 mask: 1 biases: "
            "4 biases: 8 biases: 4");
      },
      "mask 1 names an anchor");
}

}  // namespace
}  // namespace caffe
