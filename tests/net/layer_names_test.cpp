#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Net> NetWith(const std::string& layers) {
  return testing::NetOf(
      "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 2 } } } " +
      layers);
}

// Published nets have layers like two 'relu' by mistake, which Caffe accepts.
TEST(LayerNamesTest, MayBeUsedTwiceByLayersWithoutWeights) {
  const auto net = NetWith(
      "layer { name: 'a' type: 'Power' bottom: 'x' top: 'y' power_param { scale: 2 } } "
      "layer { name: 'a' type: 'Power' bottom: 'y' top: 'z' power_param { shift: 1 } }");
  net->blob_by_name("x")->mutable_cpu_data<float>()[0] = 3;
  net->Forward();
  EXPECT_EQ(net->blob_by_name("z")->cpu_data<float>()[0], 7);
}

TEST(LayerNamesTest, IdentifyWeights) {
  const std::string product =
      "layer { name: 'a' type: 'InnerProduct' bottom: 'x' top: 'TOP' "
      "inner_product_param { num_output: 2 } } ";
  std::string second = product;
  second.replace(second.find("TOP"), 3, "SUM");
  EXPECT_THAT(testing::ErrorText<InvalidArgument>([&] { NetWith(product + second); }),
              HasSubstr("layer 'a' (InnerProduct): has weights and a name that another layer has "
                        "too; names identify weights: rename one"));
}

}  // namespace
}  // namespace caffe
