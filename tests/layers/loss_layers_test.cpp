#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/net.hpp"
#include "tests/support/error_text.hpp"

namespace caffe {
namespace {

// If a loss hid them, a run would continue with weights that are lost: the solver names the blob in
// which a loss first became NaN. Each case: the loss layer and its target.
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
  for (int i = 0; i < 6; ++i) {  // the target's class or another one
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

// Labels are in the caller's memory: they may change between forward and backward.
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

// The warning of a layer of this type with these options and loss_param.
std::string Warning(const std::string& layer, const std::string& loss_param) {
  LayerParameter param;
  ParseTextProto(StrCat("name: 'loss' ", layer, " loss_param { ", loss_param, " }"), "loss",
                 &param);
  ::testing::internal::CaptureStderr();
  LayerRegistry::CreateLayer(param);
  return ::testing::internal::GetCapturedStderr();
}

TEST(LossParamTest, FieldsOfOtherLossesAreWarnedOf) {
  using ::testing::HasSubstr;
  const auto has_no_effect = [](const std::string& type, const std::string& field) {
    return HasSubstr("layer 'loss' (" + type + "): loss_param { " + field + " } has no effect");
  };
  for (const char* field : {"weight_by_label_freqs", "class_weighting", "label_smoothing"}) {
    const std::string loss_param = StrCat(field, ": ", field[0] == 'w' ? "true" : "0.5");
    EXPECT_THAT(Warning("type: 'SigmoidCrossEntropyLoss'", loss_param),
                has_no_effect("SigmoidCrossEntropyLoss", field));
    EXPECT_THAT(Warning("type: 'MultiBoxLoss' multibox_loss_param { num_classes: 2 }", loss_param),
                has_no_effect("MultiBoxLoss", field));
  }
  const std::string infogain = "type: 'InfogainLoss' bottom: 'x' bottom: 't' bottom: 'h'";
  EXPECT_THAT(Warning(infogain, "class_weighting: 1"),
              has_no_effect("InfogainLoss", "class_weighting"));
  for (const char* type : {"FocalLoss", "SoftmaxWithFocalLoss"}) {
    EXPECT_THAT(Warning(StrCat("type: '", type, "'"), "label_smoothing: 0.1"),
                has_no_effect(type, "label_smoothing"));
  }
  EXPECT_THAT(
      Warning("type: 'MultiBoxLoss' multibox_loss_param { num_classes: 2 }", "ignore_label: 1"),
      has_no_effect("MultiBoxLoss", "ignore_label"));
}

TEST(LossParamTest, FieldsOfItsOwnAreNot) {
  const std::string rule = "ignore_label: 1 normalization: FULL";
  const std::string weights = " weight_by_label_freqs: true class_weighting: 1 class_weighting: 2";
  EXPECT_EQ(Warning("type: 'SigmoidCrossEntropyLoss'", rule), "");
  EXPECT_EQ(Warning("type: 'InfogainLoss' bottom: 'x' bottom: 't' bottom: 'h'", rule), "");
  EXPECT_EQ(Warning("type: 'FocalLoss'", rule + weights), "");
  EXPECT_EQ(Warning("type: 'SoftmaxWithLoss'", rule + weights + " label_smoothing: 0.1"), "");
  EXPECT_EQ(Warning("type: 'MultiBoxLoss' multibox_loss_param { num_classes: 2 }",
                    "normalization: VALID"),
            "");
}

}  // namespace
}  // namespace caffe
