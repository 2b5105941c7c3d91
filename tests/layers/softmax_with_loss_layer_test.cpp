#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "caffe/blob.hpp"
#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "tests/support/error_text.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;

// Equal scores of one item with 4 classes at `positions` positions, all labels 0.
std::unique_ptr<Net> MakeNet(int positions, float label_smoothing) {
  NetParameter param;
  ParseTextProto(
      StrCat("force_backward: true layer { name: 'in' type: 'Input' top: 'scores' top: 'labels' "
             "input_param { shape { dim: 1 dim: 4 dim: ",
             positions, " } shape { dim: 1 dim: ", positions,
             " } } } layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'scores' bottom: "
             "'labels' top: 'loss' loss_param { normalization: NONE label_smoothing: ",
             label_smoothing, " } }"),
      "smoothing", &param);
  return std::make_unique<Net>(param);
}

float LossAndGradient(Net& net, std::vector<float>* gradient) {
  float loss = 0;
  net.Forward(&loss);
  net.Backward();
  const Blob& scores = *net.blob_by_name("scores");
  gradient->assign(scores.cpu_diff<float>(), scores.cpu_diff<float>() + scores.count());
  return loss;
}

// NVCaffe's rule: p - e / (numbers of an item - 1), and p - (1 - e) at the label; the loss itself
// only uses the label.
TEST(SoftmaxWithLossLayerTest, SmoothsTheLabelsInTheGradientOnly) {
  std::vector<float> gradient;
  EXPECT_NEAR(LossAndGradient(*MakeNet(1, 0.3f), &gradient), std::log(4.0), 1e-6);
  const float other = 0.25f - 0.3f / 3;
  EXPECT_THAT(gradient, ::testing::Pointwise(::testing::FloatNear(1e-6f),
                                             {0.25f - 0.7f, other, other, other}));
}

TEST(SoftmaxWithLossLayerTest, SpreadsTheSmoothedShareOverAllNumbersOfAnItem) {
  std::vector<float> gradient;
  EXPECT_NEAR(LossAndGradient(*MakeNet(2, 0.3f), &gradient), 2 * std::log(4.0), 1e-6);
  EXPECT_NEAR(gradient[0], 0.25 - 0.7, 1e-6);
  EXPECT_NEAR(gradient[2], 0.25 - 0.3 / 7, 1e-6);
}

TEST(SoftmaxWithLossLayerTest, RefusesToSmoothEverythingAway) {
  EXPECT_THAT(ErrorText<InvalidArgument>([] { MakeNet(1, 1); }),
              HasSubstr("label_smoothing is 1; it must be"));
}

}  // namespace
}  // namespace caffe
