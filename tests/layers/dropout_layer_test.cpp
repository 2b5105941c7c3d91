#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "caffe/error.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Net> DropoutNet(const std::string& ratio) {
  return testing::NetOf(
      "state { phase: TRAIN } "
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

TEST(DropoutLayerTest, RefusesARatioThatLeavesNothing) {
  EXPECT_THAT(testing::ErrorText<InvalidArgument>([] { DropoutNet("1"); }),
              HasSubstr("layer 'drop' (Dropout): dropout_ratio is 1"));
}

}  // namespace
}  // namespace caffe
