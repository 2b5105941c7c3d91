// ConvolutionDepthwise takes its number of groups from the bottom, so the check of num_output
// against the file's `group` passed; weights of 0 channels were read and written beyond their end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

TEST(IssueDepthwiseOutputsTest, OutputsThatTheChannelsDoNotDivideAreRefused) {
  const std::string text = testing::ErrorText<InvalidArgument>([] {
    testing::NetOf(R"(
        layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 5 dim: 4 dim: 4 } } }
        layer { name: 'dw' type: 'ConvolutionDepthwise' bottom: 'x' top: 'y'
                convolution_param { num_output: 2 kernel_size: 3 } })");
  });
  EXPECT_THAT(text, ::testing::HasSubstr("'dw'"));
  EXPECT_THAT(text, ::testing::HasSubstr("num_output 2 is not divisible by the 5 groups"));
}

}  // namespace
}  // namespace caffe
