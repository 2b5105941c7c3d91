#include "caffe/core/nearest_name.hpp"

#include <gtest/gtest.h>

namespace caffe {
namespace {

TEST(NearestNameTest, FindsTheNameOfFewestEdits) {
  EXPECT_EQ(NearestName("num_ouput", {"name", "num_output", "num"}), "num_output");
  EXPECT_EQ(NearestName("Convolutoin", {"Deconvolution", "Convolution"}), "Convolution");
}

TEST(NearestNameTest, TreatsUpperAndLowerCaseAsEqual) {
  EXPECT_EQ(NearestName("RELU", {"ELU", "ReLU", "PReLU"}), "ReLU");
}

TEST(NearestNameTest, FindsTheShortestNameThatBeginsWithIt) {
  EXPECT_EQ(NearestName("conv", {"Deconvolution", "ConvolutionDepthwise", "Convolution"}),
            "Convolution");
  EXPECT_EQ(NearestName("co", {"Deconvolution", "Convolution"}), "");
}

TEST(NearestNameTest, IsEmptyWhenNothingIsNear) {
  EXPECT_EQ(NearestName("momentum", {"pad", "stride"}), "");
  EXPECT_EQ(NearestName("x", {}), "");
}

}  // namespace
}  // namespace caffe
