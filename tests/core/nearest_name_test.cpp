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

TEST(NearestNameTest, KnowsTheNamesOfOtherFrameworks) {
  const std::vector<std::string> layers = {"BatchNorm",
                                           "Convolution",
                                           "Data",
                                           "ELU",
                                           "InnerProduct",
                                           "Pooling",
                                           "SigmoidCrossEntropyLoss",
                                           "SoftmaxWithLoss"};
  EXPECT_EQ(NearestName("CrossEntropyLoss", layers), "SoftmaxWithLoss");
  EXPECT_EQ(NearestName("Linear", layers), "InnerProduct");
  EXPECT_EQ(NearestName("Dense", layers), "InnerProduct");
  EXPECT_EQ(NearestName("Conv2d", layers), "Convolution");
  EXPECT_EQ(NearestName("MaxPool", layers), "Pooling");
  EXPECT_EQ(NearestName("BatchNorm2d", layers), "BatchNorm");
  EXPECT_EQ(NearestName("DataLoader", layers), "Data");
  EXPECT_EQ(NearestName("GroupNorm", layers), "");
  EXPECT_EQ(NearestName("lr", {"base_lr", "lr_policy"}), "base_lr");
  EXPECT_EQ(NearestName("lr", {"lr_mult", "name"}), "lr_mult");
  EXPECT_EQ(NearestName("epochs", {"max_epoch"}), "max_epoch");
}

TEST(NearestNameTest, IsEmptyWhenNothingIsNear) {
  EXPECT_EQ(NearestName("momentum", {"pad", "stride"}), "");
  EXPECT_EQ(NearestName("x", {}), "");
}

}  // namespace
}  // namespace caffe
