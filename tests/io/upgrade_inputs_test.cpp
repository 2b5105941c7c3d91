#include "caffe/io/upgrade_inputs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/io/text_format.hpp"

namespace caffe {
namespace {

using ::testing::HasSubstr;

NetParameter ParseNet(const std::string& text) {
  NetParameter net;
  ParseTextProto(text, "net.prototxt", &net);
  return net;
}

// Expects that `before` becomes `after`, and that the log contains `warning`.
void ExpectLeftOut(const std::string& before, const std::string& after,
                   const std::string& warning) {
  SCOPED_TRACE(before);
  NetParameter net = ParseNet(before);
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(UpgradeInputs("net.prototxt", &net));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("net.prototxt: " + warning));
  EXPECT_EQ(net.DebugString(), ParseNet(after).DebugString());
  EXPECT_FALSE(UpgradeInputs("net.prototxt", &net));
}

const char kInput[] = "layer { name: 'input' type: 'Input' top: 'a' input_param { shape { ";

TEST(UpgradeInputsTest, LeavesOutWhatBvlcCaffeDoes) {
  const std::string made = "layer { name: 'd' type: 'Input' top: 'a' } ";
  ExpectLeftOut("input: 'a' " + made, made, "input 'a' left out");
  ExpectLeftOut("input_dim: 1 input_dim: 2 " + made, made, "2 input_dim left out");
  ExpectLeftOut("input_shape { dim: 2 } " + made, made, "1 input_shape left out");
  ExpectLeftOut("input: 'a' input_dim: 1 input_dim: 2 input_shape { dim: 3 }",
                kInput + std::string("dim: 3 } } }"), "2 input_dim left out");
  ExpectLeftOut("input: 'a' input_dim: 1 input_dim: 2 input_dim: 3 input_dim: 4 input_dim: 5",
                kInput + std::string("dim: 1 dim: 2 dim: 3 dim: 4 } } }"), "1 input_dim left out");
  ExpectLeftOut("input: 'a' input_shape { dim: 3 } input_shape { dim: 4 }",
                kInput + std::string("dim: 3 } } }"), "1 input_shape left out");
}

TEST(UpgradeInputsTest, KeepsInputsWithoutAShapeThatNoLayerMakes) {
  ExpectLeftOut("input: 'b' input: 'a' layer { name: 'd' type: 'Input' top: 'b' }",
                "layer { name: 'input' type: 'Input' top: 'a' input_param { } } "
                "layer { name: 'd' type: 'Input' top: 'b' }",
                "input 'b' left out");
}

}  // namespace
}  // namespace caffe
