#include "caffe/core/split.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace caffe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SplitByCommaTest, GivesThePartsInOrder) {
  EXPECT_THAT(SplitByComma("a"), ElementsAre("a"));
  EXPECT_THAT(SplitByComma("a,b c,d"), ElementsAre("a", "b c", "d"));
}

TEST(SplitByCommaTest, DropsBlanksAroundPartsAndEmptyParts) {
  EXPECT_THAT(SplitByComma(" a ,\tb,, ,c,"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(SplitByComma(""), IsEmpty());
  EXPECT_THAT(SplitByComma(" , ,"), IsEmpty());
}

}  // namespace
}  // namespace caffe
