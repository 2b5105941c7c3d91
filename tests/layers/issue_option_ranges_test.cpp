// Options whose sums and products overflowed int passed their checks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

using ::testing::HasSubstr;

std::string Refusal(const std::string& layer) {
  return testing::ErrorText<InvalidArgument>([&] {
    testing::NetOf(
        "layer { name: 'x' type: 'Input' top: 'a' top: 'b' input_param { shape { dim: 1 dim: 2 "
        "dim: 4 dim: 4 } } } layer { name: 'l' bottom: 'a' top: 'y' " +
        layer + " }");
  });
}

TEST(IssueOptionRangesTest, CroppingThatOverflowsIsRefused) {
  EXPECT_THAT(Refusal("type: 'Interp' interp_param { height: 2 width: 2 pad_beg: -2147483648 "
                      "pad_end: -2147483648 }"),
              HasSubstr("pad_beg -2147483648 and pad_end -2147483648 leave nothing of 4x4"));
}

TEST(IssueOptionRangesTest, DisplacementsThatOverflowAreRefused) {
  const auto refusal = [](const std::string& options) {
    return Refusal("type: 'Correlation' bottom: 'b' correlation_param { " + options + " }");
  };
  EXPECT_THAT(refusal("kernel_size: 1 max_displacement: 32768 pad: 32768"),
              HasSubstr("max_displacement 32768 and stride_2 1 make 65537 displacements on each "
                        "axis; there may be at most 46340"));
  EXPECT_THAT(refusal("kernel_size: 1 max_displacement: 4294967295 pad: 4294967295"),
              HasSubstr("max_displacement 4294967295 and stride_2 1"));
  EXPECT_THAT(refusal("kernel_size: 1 max_displacement: 4294967295 stride_2: 2147483647"),
              HasSubstr("max_displacement 4294967295 in steps of stride_2 2147483647 leads "));
  EXPECT_THAT(refusal("kernel_size: 1 max_displacement: 1 stride_1: 4294967295"),
              HasSubstr("stride_1 and stride_2 are 4294967295 and 1"));
  EXPECT_THAT(refusal("kernel_size: 1 max_displacement: 1 pad: 2147483648"),
              HasSubstr("pad is 2147483648 along height; it must be in 0..2147483647"));
  EXPECT_THAT(refusal("kernel_size: 65535 max_displacement: 1 pad: 65535"),
              HasSubstr("kernel_size 65535 and 2 channels"));
}

}  // namespace
}  // namespace caffe
