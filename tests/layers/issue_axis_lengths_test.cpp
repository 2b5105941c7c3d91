// Layers that multiply along an axis store positions as floats, which distinguish 2^24 numbers: in
// longer axes, elements were mistaken for their neighbours.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

using ::testing::HasSubstr;

std::string Refusal(const std::string& shape, const std::string& layer) {
  return testing::ErrorText<InvalidArgument>([&] {
    testing::NetOf("layer { name: 'x' type: 'Input' top: 'x' input_param { shape { " + shape +
                   " } } } layer { name: 'l' bottom: 'x' top: 'y' " + layer + " }");
  });
}

TEST(IssueAxisLengthsTest, PlacesThatFloatsMixUpAreRefused) {
  for (const std::string layer :
       {"type: 'Reverse' reverse_param { axis: 0 }", "type: 'BatchReduction'"}) {
    const std::string text = Refusal("dim: 16777217", layer);
    EXPECT_THAT(text, HasSubstr("'l'"));
    EXPECT_THAT(text, HasSubstr("16777217 elements; it may have at most 16777216"));
  }
}

}  // namespace
}  // namespace caffe
