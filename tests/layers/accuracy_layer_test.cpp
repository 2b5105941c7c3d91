#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;

// 8 items of 3 classes.
void MakeNet(int top_k) {
  NetParameter param;
  ParseTextProto(StrCat(R"(
    layer { name: 'in' type: 'DummyData' top: 'scores' top: 'labels'
            dummy_data_param { shape { dim: 8 dim: 3 } shape { dim: 8 } } }
    layer { name: 'accuracy' type: 'Accuracy' bottom: 'scores' bottom: 'labels' top: 'accuracy'
            accuracy_param { top_k: )",
                        top_k, " } }"),
                 "accuracy", &param);
  Net net(param);
}

// If there are as many scores as classes, every label is found for any net.
TEST(AccuracyLayerTest, TopKLiesWithinTheClassesHoweverLargeTheBatch) {
  EXPECT_NO_THROW(MakeNet(3));
  EXPECT_THAT(ErrorText<InvalidArgument>([] { MakeNet(4); }),
              HasSubstr("top_k is 4, but there are 3 classes"));
  EXPECT_THAT(ErrorText<InvalidArgument>([] { MakeNet(0); }),
              HasSubstr("top_k is 0, but there are 3 classes"));
}

// The accuracy, and that of each class, for 3 items with these scores, all with label 1.
std::vector<float> AccuracyOf(const std::vector<float>& scores, const std::string& options,
                              const std::string& type = "FLOAT") {
  const auto net = testing::NetOf(StrCat("default_forward_type: ", type, R"(
    layer { name: 'in' type: 'Input' top: 'scores' top: 'labels'
            input_param { shape { dim: 3 dim: 3 } shape { dim: 3 } } }
    layer { name: 'acc' type: 'Accuracy' bottom: 'scores' bottom: 'labels' top: 'acc' top: 'class'
            accuracy_param { )",
                                         options, " } }"));
  std::ranges::copy(scores, net->blob_by_name("scores")->mutable_cpu_data());
  std::fill_n(net->blob_by_name("labels")->mutable_cpu_data(), 3, 1.0f);
  net->Forward();
  EXPECT_EQ(net->blob_by_name("class")->cpu_data()[1], net->blob_by_name("acc")->cpu_data()[0]);
  return {net->blob_by_name("acc")->cpu_data()[0], net->blob_by_name("class")->cpu_data()[1]};
}

// Three items, whose labels are 0, `label` and 1, all scored as class 0.
std::string AccuracyBesideALoss(int label, const std::string& options) {
  const auto net = testing::NetOf(StrCat(R"(
    layer { name: 'in' type: 'Input' top: 'scores' top: 'labels'
            input_param { shape { dim: 3 dim: 3 } shape { dim: 3 } } }
    layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'scores' bottom: 'labels' top: 'loss'
            loss_param { ignore_label: )",
                                         label, R"( } }
    layer { name: 'acc' type: 'Accuracy' bottom: 'scores' bottom: 'labels' top: 'acc'
            accuracy_param { )",
                                         options, " } }"));
  for (int item = 0; item < 3; ++item)
    net->blob_by_name("scores")->mutable_cpu_data()[3 * item] = 1;
  const float labels[] = {0, static_cast<float>(label), 1};
  std::ranges::copy(labels, net->blob_by_name("labels")->mutable_cpu_data());
  net->Forward();
  return StrCat(std::lround(6 * net->blob_by_name("acc")->cpu_data()[0]), "/6");
}

// SegNet's nets set this only for their losses.
TEST(AccuracyLayerTest, ALabelBeyondTheClassesThatTheLossIgnoresDoesNotCount) {
  EXPECT_EQ(AccuracyBesideALoss(3, ""), "3/6");
  EXPECT_EQ(AccuracyBesideALoss(255, ""), "3/6");
  // A class counts, as in BVLC Caffe, unless the layer says otherwise.
  EXPECT_EQ(AccuracyBesideALoss(2, ""), "2/6");
  EXPECT_EQ(AccuracyBesideALoss(2, "ignore_label: 2"), "3/6");
  // Another number that is not a class is still an error.
  EXPECT_THROW(AccuracyBesideALoss(4, "void_label: 5"), InvalidArgument);
}

constexpr float kNaNScore = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfiniteScore = std::numeric_limits<float>::infinity();

TEST(AccuracyLayerTest, ScoresThatAreNotFiniteAreNeverRight) {
  for (const char* type : {"FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16"}) {
    for (const char* top_k : {"top_k: 1", "top_k: 2", "top_k: 3"}) {
      for (const float bad : {kNaNScore, -kNaNScore, kInfiniteScore, -kInfiniteScore}) {
        EXPECT_EQ(AccuracyOf(std::vector<float>(9, bad), top_k, type)[0], 0) << type << bad;
        EXPECT_EQ(AccuracyOf({0, bad, 0, 0, bad, -1, 3, bad, 3}, top_k, type)[0], 0) << type << bad;
      }
    }
  }
}

TEST(AccuracyLayerTest, NaNOfAnotherClassCountsAgainstTheLabel) {
  const std::vector<float> scores = {kNaNScore,      1, 0, 0, 1, kNaNScore, -kInfiniteScore, 1,
                                     -kInfiniteScore};
  EXPECT_FLOAT_EQ(AccuracyOf(scores, "")[0], 1.0f / 3);
  EXPECT_EQ(AccuracyOf(scores, "top_k: 2")[0], 1);
}

// BVLC counts the classes whose score is at least the label's score.
TEST(AccuracyLayerTest, AFieldKeepsTheCountingOfBvlc) {
  const std::vector<float> scores = {0, kNaNScore, 0, kNaNScore, 1, 0, 0, kInfiniteScore, 1};
  EXPECT_EQ(AccuracyOf(scores, "nan_is_right: true")[0], 1);
  EXPECT_EQ(AccuracyOf(scores, "")[0], 0);
  EXPECT_EQ(AccuracyOf(std::vector<float>(9, kInfiniteScore), "nan_is_right: true")[0], 0);
}

}  // namespace
}  // namespace caffe
