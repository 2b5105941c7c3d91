#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "tests/support/error_text.hpp"

namespace caffe {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Net> NetOf(const std::string& ratio) {
  NetParameter param;
  ParseTextProto(
      "state { phase: TRAIN } "
      "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 100 } } } "
      "layer { name: 'drop' type: 'Dropout' bottom: 'x' top: 'y' dropout_param { dropout_ratio: " +
          ratio + " } }",
      "dropout", &param);
  return std::make_unique<Net>(param);
}

TEST(DropoutLayerTest, OfRatioZeroIsTheIdentity) {
  const auto net = NetOf("0");
  std::fill_n(net->blob_by_name("x")->mutable_cpu_data<float>(), 100, 3.0f);
  net->Forward();
  EXPECT_EQ(net->blob_by_name("y")->asum_data(), 300);
}

TEST(DropoutLayerTest, RefusesARatioThatLeavesNothing) {
  EXPECT_THAT(testing::ErrorText<InvalidArgument>([] { NetOf("1"); }),
              HasSubstr("layer 'drop' (Dropout): dropout_ratio is 1"));
}

}  // namespace
}  // namespace caffe
