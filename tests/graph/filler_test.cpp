#include "caffe/graph/filler.hpp"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "tests/support/error_text.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;

std::vector<float> Filled(const std::string& text) {
  FillerParameter filler;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &filler)) << text;
  std::vector<float> values(8);
  Fill(filler, Shape{4, 2}, RandomStream(1, StreamOf("filler")), 0, values);
  return values;
}

TEST(FillerTest, AcceptsTheEndsOfEachRange) {
  EXPECT_EQ(Filled("type: 'uniform' min: 2 max: 2"), std::vector<float>(8, 2));
  EXPECT_EQ(Filled("type: 'gaussian' mean: 3 std: 0"), std::vector<float>(8, 3));
  EXPECT_EQ(Filled("type: 'gaussian' mean: 3 std: 0 sparse: 4"), std::vector<float>(8, 3));
  EXPECT_EQ(Filled("type: 'gaussian' mean: 3 std: 0 sparse: 0"), std::vector<float>(8, 0));
}

TEST(FillerTest, RefusesWhatIsNoRange) {
  const auto expect_error = [](const std::string& text, const std::string& part) {
    EXPECT_THAT(ErrorText<InvalidArgument>([&] { Filled(text); }), HasSubstr(part));
  };
  expect_error("type: 'uniform' min: 1 max: 0", "filler 'uniform' has min 1 above max 0");
  expect_error("type: 'gaussian' std: -1", "filler 'gaussian' has std -1");
  expect_error("type: 'gaussian' sparse: 5", "has sparse 5, but the blob has only 4 outputs");
}

}  // namespace
}  // namespace caffe
