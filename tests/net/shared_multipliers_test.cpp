// lr_mult and decay_mult of parameters that layers share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "tests/support/error_text.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;

// Two layers that share one weight, each with its own options for it.
NetParameter Tied(const std::string& first, const std::string& second) {
  NetParameter param;
  ParseTextProto(StrCat(R"(
        layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }
        layer { name: "one" type: "InnerProduct" bottom: "x" top: "a" param { name: "w" )",
                        first, R"( } inner_product_param { num_output: 3 bias_term: false } }
        layer { name: "two" type: "InnerProduct" bottom: "a" top: "b" param { name: "w" )",
                        second, R"( } inner_product_param { num_output: 3 bias_term: false } })"),
                 "test", &param);
  return param;
}

void ExpectMultipliers(const std::string& first, const std::string& second, float lr_mult,
                       float decay_mult) {
  SCOPED_TRACE(StrCat("'", first, "' and '", second, "'"));
  const Net net(Tied(first, second));
  ASSERT_EQ(net.learnable_params().size(), 1u);
  EXPECT_EQ(net.learnable_params()[0].lr_mult, lr_mult);
  EXPECT_EQ(net.learnable_params()[0].decay_mult, decay_mult);
}

TEST(SharedMultipliersTest, WhoeverGivesThemGivesThemForAll) {
  ExpectMultipliers("", "", 1, 1);
  ExpectMultipliers("lr_mult: 3 decay_mult: 0.5", "", 3, 0.5);
  ExpectMultipliers("", "lr_mult: 3 decay_mult: 0.5", 3, 0.5);
  ExpectMultipliers("lr_mult: 3", "lr_mult: 3 decay_mult: 0.5", 3, 0.5);
  ExpectMultipliers("", "lr_mult: 0", 0, 1);
}

TEST(SharedMultipliersTest, MayNotDiffer) {
  EXPECT_THAT(ErrorText<InvalidArgument>([] { Net net(Tied("lr_mult: 3", "lr_mult: 2")); }),
              HasSubstr("'w' has lr_mult 2 here and 3 elsewhere"));
}

}  // namespace
}  // namespace caffe
