#include "caffe/core/split.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/support/temporary_folder.hpp"

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

TEST(SplitPathsTest, NamesOfFilesMayHaveCommasAndBlanks) {
  const testing::TemporaryFolder folder;
  const auto file = [&](const std::string& name) {
    std::ofstream(folder.path(name)).put('x');
    return folder.path(name);
  };
  const std::string plain = file("plain"), comma = file("a,b"), blank = file(" c"),
                    none = folder.path("d");
  EXPECT_THAT(SplitPaths(plain + "," + comma + "," + none + " , " + blank),
              ElementsAre(plain, comma, none, blank));
  EXPECT_THAT(SplitPaths(comma + ","), ElementsAre(comma));
  file("a");
  EXPECT_THAT(SplitPaths(comma), ElementsAre(comma));
  EXPECT_THAT(SplitPaths(",, x ,y"), ElementsAre("x", "y"));
  EXPECT_THAT(SplitPaths(""), IsEmpty());
}

TEST(JoinByCommaTest, PutsCommasBetweenNames) {
  EXPECT_EQ(JoinByComma({}), "");
  EXPECT_EQ(JoinByComma({"conv1"}), "conv1");
  EXPECT_EQ(JoinByComma({"conv1", "", "conv2"}), "conv1, , conv2");
}

}  // namespace
}  // namespace caffe
