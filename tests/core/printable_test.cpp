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

TEST(PrintableTest, ShowsControlCharactersOfUnicode) {
  EXPECT_EQ(Printable("a\xc2\x9b"
                      "31m"),
            "a\\xc2\\x9b31m");  // CSI
  EXPECT_EQ(Printable("a\x9b"
                      "31m"),
            "a\\x9b31m");                                         // the same in Latin-1
  EXPECT_EQ(Printable("\xe2\x80\xaegpj"), "\\xe2\\x80\\xaegpj");  // right to left
  EXPECT_EQ(Printable("\xe2\x80\xa8"), "\\xe2\\x80\\xa8");        // line separator
  EXPECT_EQ(Printable("\xe4\xbd\xa0\xe5\xa5\xbd \xc3\x9f \xf0\x9f\x90\x88"),
            "\xe4\xbd\xa0\xe5\xa5\xbd \xc3\x9f \xf0\x9f\x90\x88");
}

TEST(PrintableTest, KeepsLinesWhereThereMayBeSome) {
  EXPECT_EQ(PrintableLines("a\n\tb\x1b[31m\r"), "a\n\tb\\x1b[31m\\x0d");
}

TEST(PrintableTest, FindsControlCharacters) {
  EXPECT_TRUE(HasControlCharacters("a\xc2\x9b"));
  EXPECT_TRUE(HasControlCharacters("a\n"));
  EXPECT_FALSE(HasControlCharacters("conv1/3x3 caf\xc3\xa9 \xe4\xbd\xa0"));
  EXPECT_FALSE(HasControlCharacters(""));
}

TEST(PrintableTest, MakesUtf8OfAnyBytes) {
  for (const char* valid : {"", "a\n", "caf\xc3\xa9", "\xe4\xbd\xa0", "\xf0\x9f\x98\x80"})
    EXPECT_EQ(Utf8(valid), valid);
  EXPECT_EQ(Utf8("d\xe9"), "d\\xe9");           // Latin-1
  EXPECT_EQ(Utf8("\xc4\xe3x"), "\\xc4\\xe3x");  // GBK
  EXPECT_EQ(Utf8("\xe4\xbd"), "\\xe4\\xbd");    // cut short
  for (const char* none : {"\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff", "\x80"})
    EXPECT_EQ(Utf8(none).size(), 4 * std::string(none).size()) << Utf8(none);
}

TEST(PrintableTest, ShowsTheBeginningOfWhatIsLong) {
  EXPECT_EQ(Printable(std::string(300, 'x')), std::string(200, 'x') + "...");
  EXPECT_EQ(Printable(std::string(200, 'x')), std::string(200, 'x'));
}

}  // namespace
}  // namespace caffe
