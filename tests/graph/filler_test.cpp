#include "caffe/graph/filler.hpp"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "caffe/error.hpp"
#include "tests/support/error_text.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;

std::vector<float> Filled(const std::string& text, const Shape& shape = Shape{4, 2}) {
  FillerParameter filler;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &filler)) << text;
  CheckFiller(filler, shape);
  std::vector<float> values(static_cast<size_t>(shape.count()));
  Fill(filler, shape, RandomStream(1, StreamOf("filler")), 0, values);
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

TEST(FillerTest, FillsParts) {
  const Shape shape{10, 3, 3, 3};
  for (const char* text :
       {"type: 'gaussian' std: 2", "type: 'gaussian' std: 2 sparse: 4", "type: 'xavier'",
        "type: 'msra' variance_norm: AVERAGE", "type: 'uniform' min: 1 max: 2", "type: 'bilinear'",
        "type: 'constant' value: 3"}) {
    FillerParameter filler;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &filler));
    ASSERT_TRUE(FillsParts(filler));
    std::vector<float> values;
    for (const int count : {101, 2, 160, 7}) {
      std::vector<float> part(static_cast<size_t>(count));
      FillPart(filler, shape, RandomStream(1, StreamOf("filler")),
               static_cast<int64_t>(values.size()), part);
      values.insert(values.end(), part.begin(), part.end());
    }
    EXPECT_EQ(values, Filled(text, shape)) << text;
  }
  FillerParameter of_rows;
  of_rows.set_type("positive_unitball");
  EXPECT_FALSE(FillsParts(of_rows));
}

// A slope or a scale that all channels share. Caffe counts one input and one output.
TEST(FillerTest, FillsAScalar) {
  for (const char* text :
       {"type: 'gaussian' std: 2", "type: 'gaussian' std: 2 sparse: 1", "type: 'xavier'",
        "type: 'msra' variance_norm: AVERAGE", "type: 'uniform' min: 1 max: 2"}) {
    EXPECT_NE(Filled(text, Shape{})[0], 0) << text;
  }
  EXPECT_LE(std::abs(Filled("type: 'xavier'", Shape{})[0]), std::sqrt(3.0F));
  EXPECT_EQ(Filled("type: 'positive_unitball'", Shape{})[0], 1);
  EXPECT_EQ(Filled("type: 'constant' value: 3", Shape{})[0], 3);
  EXPECT_THAT(ErrorText<InvalidArgument>([] { Filled("type: 'bilinear'", Shape{}); }),
              HasSubstr("needs a blob with 4 axes and a square kernel, got scalar"));
}

}  // namespace
}  // namespace caffe
