// Layers of a plug-in that break their contract end with an error that names the layer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "caffe/gradient_check.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "caffe/plugin.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/folders.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;

std::unique_ptr<Net> Build(const std::string& type, Precision precision = FP32) {
  LoadPlugin(testing::BuildPath("lib/test_plugins/misbehaving.so"));
  NetParameter param;
  ParseTextProto(
      "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 } } } "
      "layer { name: 'l' type: '" +
          type + "' bottom: 'x' top: 'y' }",
      "net", &param);
  param.set_force_backward(true);
  return std::make_unique<Net>(param, NetOptions{.precision = precision});
}

TEST(PluginLayersTest, ThatThrowErrorsOfStandardCpp) {
  EXPECT_THAT(ErrorText<InvalidArgument>([] { Build("ThrowingShapes"); }),
              HasSubstr("layer 'l' (ThrowingShapes): the moon is full"));
}

TEST(PluginLayersTest, ThatGiveTooFewShapes) {
  EXPECT_THAT(ErrorText<InvalidArgument>([] { Build("TooFewShapes"); }),
              HasSubstr("gives 0 shapes for 1 top(s)"));
}

TEST(PluginLayersTest, ThatMakeNothing) {
  EXPECT_THAT(ErrorText<InvalidArgument>([] { Build("Silent"); }),
              HasSubstr("layer 'l' (Silent): emits no operation that makes top 'y'"));
}

// Even if it is small: the gradient of a mean over many items is far below 1.
TEST(PluginLayersTest, WithAWrongGradientAreFound) {
  for (const Precision precision : {FP64, FP32}) {
    const std::unique_ptr<Net> net = Build("HalfGradient", precision);
    const std::vector<GradientDifference> found = CheckGradients(*net, {"x"});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_FALSE(found[0].passes) << precision << ": " << found[0].error;
  }
}

}  // namespace
}  // namespace caffe
