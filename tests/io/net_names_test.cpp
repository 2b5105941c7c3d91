#include "caffe/io/net_names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/io/net_files.hpp"
#include "caffe/io/text_format.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;

std::string Check(const std::string& text) {
  NetParameter net;
  ParseTextProto(text, "test", &net);
  return ErrorText<InvalidArgument>([&] { CheckNames(net); });
}

// A net's name with a line break once stood in the log as a line of its own, "ERROR" in red.
TEST(NetNamesTest, RefusesControlCharacters) {
  EXPECT_THAT(Check(R"(name: "n\nE1121 FAKE\033[31m")"),
              HasSubstr(R"(the name of the net, 'n\x0aE1121 FAKE\x1b[31m', holds control)"));
  EXPECT_THAT(Check(R"(layer { name: "a\r" })"), HasSubstr(R"(a layer, 'a\x0d')"));
  EXPECT_THAT(Check(R"(layer { type: "a\t" })"), HasSubstr("a layer's type"));
  EXPECT_THAT(Check(R"(layer { bottom: "ok" bottom: "a\177" })"), HasSubstr("a bottom"));
  EXPECT_THAT(Check(R"(layer { top: "\001" })"), HasSubstr("a top"));
  EXPECT_THAT(Check(R"(layer { param { name: "\n" } })"), HasSubstr("a parameter"));
  EXPECT_THAT(Check(R"(input: "\n")"), HasSubstr("an input"));
  EXPECT_THAT(Check(R"(layers { name: "\n" })"), HasSubstr("a layer"));
}

TEST(NetNamesTest, AllowsOtherLetters) {
  NetParameter net;
  ParseTextProto(R"(name: "r\303\251seau 3/3 \"x\"" layer { name: "a/b-c.d_e f" type: "X" })",
                 "test", &net);
  EXPECT_NO_THROW(CheckNames(net));
}

TEST(NetNamesTest, FilesAreCheckedWhenTheyAreRead) {
  const testing::TemporaryFolder folder;
  WriteFileAtomically(folder / "net.prototxt", R"(name: "a\nb")");
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { ReadNetText(folder / "net.prototxt"); }),
              HasSubstr("net.prototxt"));
  NetParameter net;
  net.add_layer()->set_name("a\nb");
  WriteBinaryProto(folder / "net.caffemodel", net);
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { ReadNetBinary(folder / "net.caffemodel"); }),
              HasSubstr("net.caffemodel"));
}

}  // namespace
}  // namespace caffe
