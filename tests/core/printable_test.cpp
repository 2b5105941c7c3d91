#include "caffe/core/printable.hpp"

#include <gtest/gtest.h>

namespace caffe {
namespace {

TEST(PrintableTest, ShowsControlCharactersAndKeepsTheRest) {
  EXPECT_EQ(Printable("conv1/3x3"), "conv1/3x3");
  EXPECT_EQ(Printable("a\nE1121 \x1b[31m"), "a\\x0aE1121 \\x1b[31m");
  EXPECT_EQ(Printable(std::string_view("a\0b\x7f", 4)), "a\\x00b\\x7f");
  EXPECT_EQ(Printable("caf\xc3\xa9"), "caf\xc3\xa9");
}

TEST(PrintableTest, ShowsTheBeginningOfWhatIsLong) {
  EXPECT_EQ(Printable(std::string(300, 'x')), std::string(200, 'x') + "...");
  EXPECT_EQ(Printable(std::string(200, 'x')), std::string(200, 'x'));
}

}  // namespace
}  // namespace caffe
