// SoftmaxWithLoss with labels that have the shape of the scores.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "caffe/core/philox.hpp"
#include "caffe/error.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;

std::string SoftLossText(const std::string& scores, const std::string& labels,
                         const std::string& rest, const std::string& type = "SoftmaxWithLoss",
                         const std::string& tops = "top: 'loss'") {
  return "force_backward: true default_forward_type: DOUBLE default_backward_type: DOUBLE layer { "
         "name: 'in' type: 'Input' top: 'scores' top: 'labels' input_param { shape { " +
         scores + " } shape { " + labels + " } } } layer { name: 'loss' type: '" + type +
         "' bottom: 'scores' bottom: 'labels' " + tops + " " + rest + " }";
}

struct SoftResult {
  double loss;
  std::vector<double> gradient;
};

SoftResult RunLoss(const std::string& text, const std::vector<double>& scores,
                   const std::vector<double>& labels) {
  const auto net = testing::NetOf(text);
  Blob &x = *net->blob_by_name("scores"), &t = *net->blob_by_name("labels");
  std::copy(scores.begin(), scores.end(), x.mutable_cpu_data<double>());
  std::copy(labels.begin(), labels.end(), t.mutable_cpu_data<double>());
  net->Forward();
  net->Backward();
  const double* gradient = x.cpu_diff<double>();
  return {net->blob_by_name("loss")->cpu_data<double>()[0], {gradient, gradient + x.count()}};
}

void ExpectResult(const SoftResult& result, double loss, const std::vector<double>& gradient,
                  double tolerance) {
  EXPECT_NEAR(result.loss, loss, tolerance);
  ASSERT_EQ(result.gradient.size(), gradient.size());
  for (size_t i = 0; i < gradient.size(); ++i)
    EXPECT_NEAR(result.gradient[i], gradient[i], tolerance) << i;
}

const std::vector<double> kSoftScores = {1, -2, 0.5, 3, 0, 4, -1, 2, -0.5, 0.25, 1.5, -3};
const std::vector<double> kSoftShares = {0.7, 0.3, 0, 0, 0.1, 0.2, 0.3, 0.4, 0, 0, 1, 0};

// Results of torch.nn.functional.cross_entropy of PyTorch 2.4.1 in double.
TEST(SoftLabelsTest, AgreeWithPyTorch) {
  const std::string shape = "dim: 3 dim: 4";
  ExpectResult(RunLoss(SoftLossText(shape, shape, ""), kSoftScores, kSoftShares), 2.103581080,
               {-0.196482083, -0.098165284, 0.022351413, 0.272295954, -0.028071982, 0.220593356,
                -0.098064457, -0.094456917, 0.031481762, 0.06664689, -0.100712831, 0.00258418},
               1e-8);
  ExpectResult(RunLoss(SoftLossText(shape, shape,
                                    "loss_param { normalization: NONE weight_by_label_freqs: true "
                                    "class_weighting: [0.5, 1, 2, 3] }"),
                       kSoftScores, kSoftShares),
               8.955882086,
               {-0.278140062, -0.296422304, 0.043585255, 0.530977111, -0.017642692, 1.566649142,
                -0.588096412, -0.960910038, 0.188890569, 0.399881338, -0.604276989, 0.015505082},
               1e-8);
}

TEST(SoftLabelsTest, MayLackTheAxesOfOne) {
  const std::string plain = "dim: 3 dim: 4", long_one = "dim: 3 dim: 4 dim: 1 dim: 1";
  const SoftResult expected = RunLoss(SoftLossText(plain, plain, ""), kSoftScores, kSoftShares);
  const SoftResult result = RunLoss(SoftLossText(long_one, plain, ""), kSoftScores, kSoftShares);
  ExpectResult(result, expected.loss, expected.gradient, 1e-12);
}

// With every option of the loss, shares of 0 and 1 give the same as whole numbers.
TEST(SoftLabelsTest, OfOneClassAreItsLabel) {
  std::vector<double> scores, labels, shares(2 * 3 * 4);
  const RandomStream random(1, 2);
  for (int i = 0; i < 24; ++i) scores.push_back(4 * ToUniform(random.Bits(i)) - 2);
  for (int n = 0; n < 2; ++n) {
    for (int pixel = 0; pixel < 4; ++pixel) {
      const int label = (n + pixel * 2) % 3;
      labels.push_back(label);
      shares[(n * 3 + label) * 4 + pixel] = 1;
    }
  }
  for (const std::string options :
       {"loss_param { normalization: VALID }", "loss_param { normalization: FULL }",
        "loss_param { normalization: BATCH_SIZE label_smoothing: 0.2 } loss_weight: 3",
        "loss_param { normalization: NONE }",
        "loss_param { normalization: PRE_FIXED pre_fixed_normalizer: 7 }",
        "loss_param { label_smoothing: 0.3 weight_by_label_freqs: true class_weighting: [0.5, 2, "
        "3] }"}) {
    SCOPED_TRACE(options);
    const std::string shape = "dim: 2 dim: 3 dim: 2 dim: 2";
    const SoftResult hard =
        RunLoss(SoftLossText(shape, "dim: 2 dim: 2 dim: 2", options), scores, labels);
    const SoftResult soft = RunLoss(SoftLossText(shape, shape, options), scores, shares);
    ExpectResult(soft, hard.loss, hard.gradient, 1e-12);
  }
}

// The loss and the gradient of a mixture are mixtures.
TEST(SoftLabelsTest, AreMixturesOfLabels) {
  const std::string options = "loss_param { label_smoothing: 0.1 }";
  const std::string scores = "dim: 1 dim: 4", hard = "dim: 1";
  const std::vector<double> x = {1, -2, 0.5, 3};
  const SoftResult first = RunLoss(SoftLossText(scores, hard, options), x, {1});
  const SoftResult second = RunLoss(SoftLossText(scores, hard, options), x, {3});
  const SoftResult mixed = RunLoss(SoftLossText(scores, scores, options), x, {0, 0.25, 0, 0.75});
  std::vector<double> gradient;
  for (int i = 0; i < 4; ++i)
    gradient.push_back(0.25 * first.gradient[i] + 0.75 * second.gradient[i]);
  ExpectResult(mixed, 0.25 * first.loss + 0.75 * second.loss, gradient, 1e-12);
}

// With one class there is one label at each position, as usual.
TEST(SoftLabelsTest, OfOneScoreAreLabels) {
  const SoftResult result =
      RunLoss(SoftLossText("dim: 2 dim: 1", "dim: 2 dim: 1", ""), {1, 2}, {0, 0});
  EXPECT_EQ(result.loss, 0);
}

TEST(SoftLabelsTest, AreRefusedWhereTheyMeanNothing) {
  const std::string shape = "dim: 3 dim: 4";
  const auto error = [&](const std::string& rest, const std::string& type = "SoftmaxWithLoss",
                         const std::string& tops = "top: 'loss'") {
    return ErrorText<InvalidArgument>(
        [&] { testing::NetOf(SoftLossText(shape, shape, rest, type, tops)); });
  };
  EXPECT_THAT(error("loss_param { ignore_label: 255 }"),
              HasSubstr("layer 'loss' (SoftmaxWithLoss): ignore_label is 255, but the labels have "
                        "shape 3x4, that is a share of each class; remove ignore_label"));
  EXPECT_THAT(error("", "SoftmaxWithLoss", "top: 'loss' top: 'p' top: 'each'"),
              HasSubstr("has 3 tops, but labels of shape 3x4 are shares of classes"));
  EXPECT_THAT(error("", "FocalLoss"), HasSubstr("the focal loss does not take; use SoftmaxWith"));
  EXPECT_THAT(
      error("", "Accuracy"),
      HasSubstr("layer 'loss' (Accuracy): the labels have shape 3x4, a share of each class; "
                "Accuracy compares with whole numbers: give it the labels from before "
                "Mixup, or limit it to phase TEST"));
}

}  // namespace
}  // namespace caffe
