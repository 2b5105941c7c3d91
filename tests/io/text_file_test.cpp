#include "caffe/io/text_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using testing::ErrorText;

TEST(TextFileTest, HasNoByteOrderMark) {
  const testing::TemporaryFolder folder;
  const std::string file = folder / "list.txt";
  for (const std::string mark : {"", "\xef\xbb\xbf"}) {
    WriteFileAtomically(file, mark + "a.png 1\n");
    EXPECT_EQ(ReadTextFile(file), "a.png 1\n");
  }
  WriteFileAtomically(file, std::string("\xff\xfe"
                                        "a\0",
                                        4));
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { ReadTextFile(file); }),
              ::testing::HasSubstr(file + ": the text is in UTF-16"));
}

}  // namespace
}  // namespace caffe
