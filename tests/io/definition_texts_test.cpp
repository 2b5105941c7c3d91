#include "caffe/io/definition_texts.hpp"

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

template <typename Definition>
std::string Check(const std::string& text) {
  Definition definition;
  ParseTextProto(text, "test", &definition);
  return ErrorText<InvalidArgument>([&] { CheckTexts(definition); });
}

// A net's name with a line break once appeared in the log as a separate line, "ERROR" in red.
TEST(DefinitionTextsTest, RefusesControlCharacters) {
  EXPECT_THAT(Check<NetParameter>(R"(name: "n\nE1121 FAKE\033[31m")"),
              HasSubstr(R"(name is 'n\x0aE1121 FAKE\x1b[31m', which holds control)"));
  EXPECT_THAT(Check<NetParameter>(R"(layer { name: "ok" } layer { bottom: "ok" bottom: "a\177" })"),
              HasSubstr(R"(layer[1].bottom is 'a\x7f')"));
  EXPECT_THAT(Check<NetParameter>(R"(layer { data_param { source: "a\r" } })"),
              HasSubstr("layer[0].data_param.source"));
  EXPECT_THAT(Check<NetParameter>(R"(layers { name: "\n" })"), HasSubstr("layers[0].name"));
  EXPECT_THAT(Check<NetParameter>(R"(layer { type: "a\302\2331m" })"), HasSubstr("layer[0].type"));
  EXPECT_THAT(Check<SolverParameter>(R"(snapshot_prefix: "a\nI1122 FAKE")"),
              HasSubstr("snapshot_prefix"));
  EXPECT_THAT(Check<SolverParameter>(R"(net_param { layer { name: "\t" } })"),
              HasSubstr("net_param.layer[0].name"));
}

TEST(DefinitionTextsTest, AllowsOtherLetters) {
  NetParameter net;
  ParseTextProto(R"(name: "r\303\251seau 3/3 \"x\"" layer { name: "a/b-c.d_e f" type: "X"
                    python_param { param_str: "a: 1\n\tb: 2" } })",
                 "test", &net);
  EXPECT_NO_THROW(CheckTexts(net));
}

TEST(DefinitionTextsTest, FilesAreCheckedWhenTheyAreRead) {
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
