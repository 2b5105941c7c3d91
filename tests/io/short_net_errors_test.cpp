// Mistakes in includes, blocks and their uses: errors say where, and how the net came there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/net_files.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::TemporaryFolder;

class ShortNetErrorsTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) const {
    WriteFileAtomically(folder_ / name, text);
  }
  std::string Path(const std::string& name = "net.prototxt") const { return folder_ / name; }
  template <typename Kind = InvalidArgument>
  std::string ErrorOf(const std::string& text) const {
    Write("net.prototxt", text);
    return ErrorText<Kind>([&] { ReadNetText(Path()); });
  }
  // The error is at LINE:COLUMN and says this.
  void ExpectError(const std::string& text, const std::string& place,
                   const std::string& what) const {
    const std::string error = ErrorOf(text);
    EXPECT_THAT(error, StartsWith(Path() + ":" + place + ": ")) << text;
    EXPECT_THAT(error, HasSubstr(what)) << text;
  }

  const TemporaryFolder folder_;
};

constexpr const char* kBlock =
    "block { name: 'b' argument { name: 'width' } argument { name: 'stride' default: 1 }\n"
    "        layer { name: 'a' bottom: '$in' top: '$out' loss_weight: $width } }\n";

TEST_F(ShortNetErrorsTest, IncludesThatAreNotThere) {
  Write("blocks.prototxt", "layer { name: 'x' }");
  EXPECT_EQ(ErrorOf<IoError>("\n  include: 'bloks.prototxt'"),
            Path() + ":2:3: " + Path("bloks.prototxt") +
                ": cannot open: No such file or directory; did you mean '" +
                Path("blocks.prototxt") + "'?\n    include: 'bloks.prototxt'\n    ^");
  Write("blocks.prototxt", "include: 'none.prototxt'");
  EXPECT_THAT(ErrorOf<IoError>("include: 'blocks.prototxt'"),
              HasSubstr("No such file or directory; included at " + Path() + ":1:1\n"));
  ExpectError("include: '.'", "1:1", " is not a file that can be included");
  ExpectError("include: ''", "1:1", "is not a name of a file");
  ExpectError("include: 3", "1:1", "include takes the name of a file between quotes");
  ExpectError("include { phase: TRAIN } use { }", "1:1", "include takes the name of a file");
}

TEST_F(ShortNetErrorsTest, IncludesInCircles) {
  Write("a.prototxt", "include: 'b.prototxt'");
  Write("b.prototxt", "\ninclude: './a.prototxt'");
  const std::string error = ErrorOf("include: 'a.prototxt'");
  EXPECT_THAT(error, StartsWith(Path("b.prototxt") + ":2:1: "));
  EXPECT_THAT(error, HasSubstr("a.prototxt includes itself; remove one of the includes; included "
                               "at " +
                               Path("a.prototxt") + ":1:1, included at " + Path() + ":1:1"));
  ExpectError("include: 'net.prototxt'", "1:1", "net.prototxt includes itself");
}

TEST_F(ShortNetErrorsTest, TooManyIncludes) {
  for (int i = 0; i < 30; ++i) {
    const std::string next = "include: '" + std::to_string(i + 1) + "'\n";
    Write(std::to_string(i), next + next);
  }
  Write("30", "");
  EXPECT_THAT(ErrorOf("include: '0'"), HasSubstr("includes are nested more than 20 deep"));
  EXPECT_THAT(ErrorOf("include: '15'"), HasSubstr("more than 1000 includes"));
}

TEST_F(ShortNetErrorsTest, FilesWithWrongBraces) {
  Write("part.prototxt", "block {\n  name: 'b'\n  layer { name: 'a'\n  layer { name: 'c' }\n}\n");
  EXPECT_THAT(ErrorOf("include: 'part.prototxt'"),
              StartsWith(Path("part.prototxt") +
                         ":4:3: 'layer' has no field 'layer'; is a '}' missing before it, for the "
                         "'{' of line 3?; included at " +
                         Path() + ":1:1\n"));
  ExpectError("use { }\nblock { name: 'b'\n", "3:1",
              "the file ends here, but the '{' of line 2 has no '}'");
  ExpectError("defaults { type: 'ReLU' }\nlayers { type: RELU }", "2:1",
              "takes `layer`, not the older `layers`; convert the file first");
  ExpectError("use { } }", "1:9", "this '}' closes nothing");
  ExpectError("use { block 'b' }", "1:13", "a ':' or a '{' is expected after 'block', got 'b'");
  ExpectError("use { block: }", "1:14", "a value is expected, got }");
  ExpectError("use { x: [1, 2 }", "1:17", "the '[' of line 1 has no ']'");
  ExpectError("use { block: 'b }\n", "1:18", "is the closing quote missing?");
  ExpectError("use { 3: 4 }", "1:7", "the name of a field is expected, got 3");
  std::string deep = "use {";
  for (int i = 0; i < 100000; ++i) deep += " x {";
  EXPECT_THAT(ErrorOf(deep), HasSubstr("nested more than 100 deep"));
}

TEST_F(ShortNetErrorsTest, BlocksThatAreNotThere) {
  const std::string block = kBlock;
  ExpectError(block + "use { block: 'other' name: 'u' }", "3:7",
              "there is no block 'other'; the blocks so far are b");
  ExpectError("block { name: 'residual' layer { } }\nuse { block: 'residul' name: 'u' }", "2:7",
              "there is no block 'residul'; did you mean 'residual'?");
  ExpectError("use { block: 'c' }", "1:7", "define it before its use, or include the file");
  ExpectError("use { }", "1:1", "this use names no block; write use");
  ExpectError("use { blok: 'b' name: 'c' }", "1:7", "this use names no block, but has 'blok'");
  ExpectError(block + "use: 3", "3:1", "write use { block:");
  ExpectError(block + block, "3:1", "block 'b' is there twice, first at " + Path() + ":1:1");
}

TEST_F(ShortNetErrorsTest, WrongBlocks) {
  ExpectError("block { layer { } }", "1:1", "'block' has no name");
  ExpectError("block { name: 'b' }", "1:1", "block 'b' has no layer");
  ExpectError("block { name: 'b' layers { } }", "1:19",
              "block 'b' has no field 'layers'; did you mean 'layer'?");
  ExpectError("block { name: 'b' name: 'c' layer { } }", "1:19",
              "'name' is given twice, first at " + Path() + ":1:9");
  ExpectError("block { name: 'b' layer { top: 'x' bottom: '$out' } }", "1:1",
              "block 'b' never makes $out; write top: \"$out\"");
  ExpectError("block { name: 'b' layer { top: '$out2' } }", "1:1", "block 'b' never makes $out;");
  ExpectError("block { name: 'b' argument { name: 'x' } argument { name: 'x' } layer { } }", "1:42",
              "block 'b' has argument 'x' twice");
  ExpectError("block { name: 'b' argument { name: 'in2' } layer { } }", "1:19",
              "an argument cannot be called 'in2'");
  ExpectError("block { name: 'b' argument { name: '2' } layer { } }", "1:19",
              "'2' is not a name of an argument");
  ExpectError("block { name: 'b' argument { named: '2' } layer { } }", "1:30",
              "an argument has no field 'named'");
}

TEST_F(ShortNetErrorsTest, WrongArguments) {
  const std::string block = kBlock;
  const auto expect = [&](const std::string& arguments, const std::string& place,
                          const std::string& what) {
    ExpectError(block + "use { block: 'b' name: 'u' bottom: 'x' " + arguments + " }", place, what);
  };
  expect(
      "", "3:1",
      "use 'u' does not give 'width', which block 'b' needs (" + Path() + ":1:19); add width: ...");
  expect("widht: 3", "3:40",
         "block 'b' (" + Path() + ":1:1) has no argument 'widht'; did you mean 'width'?");
  expect("q: 3", "3:40", "has no argument 'q'; it has width, stride");
  expect("width: 3 width: 4", "3:49", "'width' is given twice, first at " + Path() + ":3:40");
  expect("width: 3 repeat: 1 repeat: 2", "3:59", "'repeat' is given twice");
  expect("width: $y", "3:47", "$y stands outside of a block");
  expect("width: $(1+1)", "3:47", "$(...) stands outside of a block");
}

TEST_F(ShortNetErrorsTest, WrongBottomsAndTops) {
  const std::string block = kBlock;
  const std::string use = "use { block: 'b' name: 'u' width: 1 ";
  ExpectError(block + use + "}", "3:1",
              "use 'u' gives 0 bottoms, but block 'b' (" + Path() + ":1:1) reads 1: $in");
  ExpectError(block + use + "bottom: ['x', 'y'] }", "3:1", "gives 2 bottoms, but");
  ExpectError(block + use + "bottom: 'x' top: 'y' top: 'z' }", "3:1", "gives 2 tops, but");
  ExpectError(block + use + "bottom: 3 }", "3:37", "takes names of blobs between quotes, got 3");
  ExpectError(block + use + "bottom: '' }", "3:45", "field 'bottom' is an empty name");
  ExpectError("block { name: 'b' layer { top: 'y' } }\nuse { block: 'b' name: 'u' top: 'x' }",
              "2:1", "makes 0: none of its layers has top: \"$out\"");
  ExpectError("block { name: 'b' layer { top: '$out' } }\nuse { block: 'b' name: 'u' repeat: 2 }",
              "2:1", "which does not both read $in and make $out");
}

TEST_F(ShortNetErrorsTest, WrongRepetitions) {
  for (const char* repeat : {"0", "-3", "1000000"}) {
    ExpectError(std::string(kBlock) +
                    "use { block: 'b' name: 'u' bottom: 'x' width: 1 repeat: " + repeat + " }",
                "3:49", std::string("repeat is ") + repeat + "; give 1 to 100000");
  }
  ExpectError(std::string(kBlock) + "use { block: 'b' name: 'u' bottom: 'x' width: 1 repeat: x }",
              "3:49", "'repeat' is x, which is not a whole number");
}

TEST_F(ShortNetErrorsTest, NamesThatAreThereTwice) {
  const std::string use = "use { block: 'b' name: 'u' bottom: 'x' width: 1 }\n";
  ExpectError(kBlock + use + use, "4:1",
              "two uses are called 'u', the other one at " + Path() + ":3:1");
  ExpectError("layer { name: 'u/a' }\n" + (kBlock + use), "3:9",
              "layer 'u/a' is there twice with all blocks expanded, first at " + Path() +
                  ":1:1; give a layer or a use another name; used at " + Path() + ":4:1");
  ExpectError(std::string(kBlock) + "use { block: 'b' bottom: 'x' width: 1 }", "3:1",
              "this use of block 'b' has no name");
}

TEST_F(ShortNetErrorsTest, UnknownReferences) {
  EXPECT_THAT(ErrorOf("block { name: 'b' layer { name: $widht } }\nuse { block: 'b' name: 'u' }"),
              StartsWith(Path() + ":1:33: there is no $widht in block 'b'; it knows $in, $out, "
                                  "$index; used at "));
  const auto fails = [&](const std::string& layer, const std::string& what) {
    const std::string error = ErrorOf("block { name: 'b' argument { name: 'width' }\nlayer { " +
                                      layer + " } }\nuse { block: 'b' name: 'u' width: 10 }");
    EXPECT_THAT(error, StartsWith(Path() + ":2:")) << layer;
    EXPECT_THAT(error, HasSubstr(what)) << layer;
    EXPECT_THAT(error, HasSubstr("; used at " + Path() + ":3:1\n")) << layer;
  };
  fails("loss_weight: $widht", "there is no $widht in block 'b'; did you mean $width?");
  ExpectError(
      "block { name: 'a' argument { name: 'x' default: $y } argument { name: 'y' default: 1 } "
      "layer { name: '$x' type: 'ReLU' } } use { block: 'a' name: 'u' }",
      "1:49", "$y has no value here, because argument 'y' comes later; put it first");
  fails("name: '${widht}x'", "there is no $widht");
  fails("name: '$(widht)'", "there is no $widht");
  ExpectError("block { name: 'b' layer { name: 'a$' } }", "1:33",
              "is followed by no name; write $width or ${width}, and $$");
  ExpectError("block { name: 'b' layer { name: '${x' } }", "1:33", "is followed by no name");
  fails("name: '$(width'", "the '(' in '$(width' has no ')'");
  fails("loss_weight: $(in3)", "there is no $in3: block 'b' has 0 bottoms");
  fails("loss_weight: $(width / 4)", "10 / 4 leaves a remainder of 2; give numbers that divide");
  fails("loss_weight: $(width / 0)", "10 / 0 has no result");
  fails("loss_weight: $(width * 9000000000000000000)", "does not fit into 64 bits");
  fails("loss_weight: $(width 2)", "an operator or ')' is expected, got 2");
  fails("loss_weight: $(width + )", "a whole number or the name of an argument is expected");
  fails("loss_weight: $(1.5)", "a whole number or the name of an argument is expected, got 1.5");
}

TEST_F(ShortNetErrorsTest, BlocksThatUseThemselves) {
  ExpectError(
      "block { name: 'a' use { block: 'c' name: 'x' } }\n"
      "block { name: 'c' use { block: 'a' name: 'x' } }\n"
      "use { block: 'a' name: 'u' }",
      "2:19",
      "block 'a' uses itself: a -> c -> a; used at " + Path() + ":1:19, used at " + Path() +
          ":3:1");
}

// 2^40 layers: an error after the first 100,000.
TEST_F(ShortNetErrorsTest, BlocksThatGrowWithoutLimit) {
  std::string text =
      "block { name: 'b0' layer { name: 'x' } layer { name: 'y' } layer { name: 'z' } }\n";
  std::string long_text;
  for (int i = 1; i <= 40; ++i) {
    const std::string own = std::to_string(i), below = std::to_string(i - 1);
    const std::string use = "use { block: 'b" + below + "' name: '";
    text += "block { name: 'b" + own + "' " + use + "x' } " + use + "y' } }\n";
    long_text +=
        "block { name: 'b" + own + "' argument { name: 'a' } " + use + "x' a: '${a}${a}' } }\n";
  }
  EXPECT_THAT(ErrorOf(text + "use { block: 'b40' name: 'u' }"),
              HasSubstr("this net has more than 100000 layers with all blocks expanded"));
  EXPECT_THAT(ErrorOf(text + "use { block: 'b40' name: 'u' }"), HasSubstr(" and 33 more\n"));
  const std::string wide = "block { name: 'b0' argument { name: 'a' } layer { name: '$a' } }\n";
  EXPECT_THAT(ErrorOf(wide + long_text + "use { block: 'b40' name: 'u' a: 'abc' }"),
              HasSubstr("bytes with its arguments; at most 65536 are possible"));
}

TEST_F(ShortNetErrorsTest, WrongDefaults) {
  ExpectError("\ndefaults { type: 'Convolutoin' }", "2:1",
              "defaults for layers of type 'Convolutoin', which does not exist; did you mean "
              "'Convolution'?");
  ExpectError("defaults { }", "1:1", "'defaults' needs the type of the layers");
  ExpectError("defaults { type: 'ReLU' top: 'x' }", "1:25",
              "defaults for all layers of type 'ReLU' cannot set 'top'");
}

TEST_F(ShortNetErrorsTest, WrongWordsGetTheRightOne) {
  ExpectError("blok { name: 'x' }", "1:1",
              "NetParameter has no field 'blok'; did you mean 'block'?");
}

}  // namespace
}  // namespace caffe
