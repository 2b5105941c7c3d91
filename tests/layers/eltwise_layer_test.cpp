#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Net> EltwiseNet(const std::string& options) {
  return testing::NetOf(
      "layer { name: 'in' type: 'Input' top: 'a' top: 'b' input_param { shape { dim: 1 } } } "
      "layer { name: 'e' type: 'Eltwise' bottom: 'a' bottom: 'b' top: 'y' eltwise_param { " +
      options + " } }");
}

TEST(EltwiseLayerTest, PassesOverCoefficientsOfAMaximum) {
  const auto net = EltwiseNet("operation: MAX coeff: 3 coeff: 1");
  net->blob_by_name("a")->mutable_cpu_data<float>()[0] = 1;
  net->blob_by_name("b")->mutable_cpu_data<float>()[0] = 2;
  net->Forward();
  EXPECT_EQ(net->blob_by_name("y")->cpu_data<float>()[0], 2);
}

TEST(EltwiseLayerTest, RefusesCoefficientsOfAProduct) {
  EXPECT_THAT(
      testing::ErrorText<InvalidArgument>([] { EltwiseNet("operation: PROD coeff: 3 coeff: 1"); }),
      HasSubstr("layer 'e' (Eltwise): coeff is only for operation: SUM"));
}

}  // namespace
}  // namespace caffe
