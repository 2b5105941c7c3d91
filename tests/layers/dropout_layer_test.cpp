#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "caffe/error.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Net> DropoutNet(const std::string& ratio, const std::string& phase = "TRAIN") {
  return testing::NetOf(
      "state { phase: " + phase +
      " } "
      "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 100 } } } "
      "layer { name: 'drop' type: 'Dropout' bottom: 'x' top: 'y' dropout_param { dropout_ratio: " +
      ratio + " } }");
}

TEST(DropoutLayerTest, OfRatioZeroIsTheIdentity) {
  const auto net = DropoutNet("0");
  std::fill_n(net->blob_by_name("x")->mutable_cpu_data<float>(), 100, 3.0f);
  net->Forward();
  EXPECT_EQ(net->blob_by_name("y")->asum_data(), 300);
}

// The values of y if x is 3 everywhere.
std::set<float> ValuesOf(Net& net) {
  std::fill_n(net.blob_by_name("x")->mutable_cpu_data<float>(), 100, 3.0f);
  net.Forward();
  const float* y = net.blob_by_name("y")->cpu_data<float>();
  return {y, y + 100};
}

// As in Faster R-CNN: otherwise scores in testing would be too large by 1 / (1 - dropout_ratio).
TEST(DropoutLayerTest, ScalesInTestingWhereTrainingDoesNot) {
  EXPECT_EQ(ValuesOf(*DropoutNet("0.25 scale_train: false")), (std::set<float>{0, 3}));
  EXPECT_EQ(ValuesOf(*DropoutNet("0.25 scale_train: false", "TEST")), (std::set<float>{2.25f}));
  EXPECT_EQ(ValuesOf(*DropoutNet("0.25")), (std::set<float>{0, 4}));
  EXPECT_EQ(ValuesOf(*DropoutNet("0.25", "TEST")), (std::set<float>{3}));
}

// As in Bayesian SegNet: each pass is another sample.
TEST(DropoutLayerTest, SamplesInTestingIfAsked) {
  const auto net = DropoutNet("0.25 sample_weights_test: true", "TEST");
  std::set<double> sums;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(ValuesOf(*net), (std::set<float>{0, 4}));
    const float* y = net->blob_by_name("y")->cpu_data<float>();
    double sum = 0;
    for (int k = 0; k < 100; ++k) sum += y[k] * (k + 1);
    sums.insert(sum);
  }
  EXPECT_EQ(sums.size(), 4u);
}

TEST(DropoutLayerTest, RefusesARatioThatLeavesNothing) {
  EXPECT_THAT(testing::ErrorText<InvalidArgument>([] { DropoutNet("1"); }),
              HasSubstr("layer 'drop' (Dropout): dropout_ratio is 1"));
}

}  // namespace
}  // namespace caffe
