#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "tests/support/error_text.hpp"

namespace caffe {
namespace {

// A loss that hid them would let a run go on with weights that are lost: the solver names the blob
// in which a loss stopped being a number. Each case: the loss layer and what it compares with.
class LossOfNaNTest : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(LossOfNaNTest, IsNaN) {
  const auto& [layer, targets] = GetParam();
  NetParameter param;
  ParseTextProto(StrCat("layer { name: 'in' type: 'Input' top: 'x' top: 't' "
                        "input_param { shape { dim: 2 dim: 3 } shape { ",
                        targets, " } } } layer { name: 'loss' bottom: 'x' bottom: 't' top: 'loss' ",
                        layer, " }"),
                 "loss", &param);
  Net net(param);
  float* x = net.blob_by_name("x")->mutable_cpu_data<float>();
  std::fill(x, x + 6, 0.25f);
  for (int i = 0; i < 6; ++i) {  // a target's class or another
    x[i] = std::numeric_limits<float>::quiet_NaN();
    net.Forward();
    EXPECT_TRUE(std::isnan(net.blob_by_name("loss")->cpu_data<float>()[0])) << "x[" << i << ']';
    x[i] = 0.25f;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layers, LossOfNaNTest,
    ::testing::Values(std::pair("type: 'HingeLoss'", "dim: 2"),
                      std::pair("type: 'HingeLoss' hinge_loss_param { norm: L2 }", "dim: 2"),
                      std::pair("type: 'SoftmaxWithLoss'", "dim: 2"),
                      std::pair("type: 'SigmoidCrossEntropyLoss'", "dim: 2 dim: 3"),
                      std::pair("type: 'EuclideanLoss'", "dim: 2 dim: 3"),
                      std::pair("type: 'L1Loss'", "dim: 2 dim: 3")));

// Labels are the caller's memory: what they hold at backward need not be what forward saw.
class ChangedLabelTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ChangedLabelTest, IsAnErrorInBackward) {
  NetParameter param;
  ParseTextProto(
      StrCat("force_backward: true layer { name: 'in' type: 'Input' top: 'x' top: 't' top: 'h' "
             "input_param { shape { dim: 2 dim: 3 } shape { dim: 2 } shape { dim: 1 "
             "dim: 1 dim: 3 dim: 3 } } } "
             "layer { name: 'loss' bottom: 'x' bottom: 't' top: 'loss' ",
             GetParam(), " }"),
      "loss", &param);
  Net net(param);
  std::fill_n(net.blob_by_name("x")->mutable_cpu_data<float>(), 6, 0.25f);
  net.Forward();
  net.blob_by_name("t")->mutable_cpu_data<float>()[1] = 99;
  EXPECT_THAT(testing::ErrorText<InvalidArgument>([&] { net.Backward(); }),
              ::testing::HasSubstr("label 99 at position 1 of the batch is outside 0..2"));
}

INSTANTIATE_TEST_SUITE_P(Layers, ChangedLabelTest,
                         ::testing::Values("type: 'MultinomialLogisticLoss'",
                                           "type: 'InfogainLoss' bottom: 'h'"));

}  // namespace
}  // namespace caffe
