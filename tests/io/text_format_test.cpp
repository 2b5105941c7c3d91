#include "caffe/io/text_format.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/proto/caffe.pb.h"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using testing::ErrorText;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using testing::TemporaryFolder;

std::string ParseError(const std::string& text) {
  NetParameter net;
  return ErrorText<InvalidArgument>([&] { ParseTextProto(text, "net.prototxt", &net); });
}

TEST(TextFormatTest, SuggestsTheNearestFieldName) {
  EXPECT_EQ(ParseError("layer {\n"
                       "  name: 'conv1'\n"
                       "  convolution_param {\n"
                       "    num_ouput: 20\n"
                       "  }\n"
                       "}\n"),
            "net.prototxt:4:5: in layer 'conv1': ConvolutionParameter has no field 'num_ouput'; "
            "did you mean 'num_output'?\n"
            "      num_ouput: 20\n"
            "      ^");
}

TEST(TextFormatTest, CountsColumnsInCharactersWhenLinesHoldTabs) {
  const std::string error = ParseError("layer {\n\tnme: 'a'\n}");
  EXPECT_THAT(error, StartsWith("net.prototxt:2:2: LayerParameter has no field 'nme'"));
  EXPECT_THAT(error, HasSubstr("\n          nme: 'a'\n          ^"));
}

TEST(TextFormatTest, SuggestsTheNearestEnumValueOfTheRightMessage) {
  EXPECT_THAT(ParseError("layer { name: 'p' pooling_param { pool: AVG } }"),
              StartsWith("net.prototxt:1:41: in layer 'p': field 'pool' of PoolingParameter has no "
                         "value 'AVG'; did you mean 'AVE'? use one of MAX, AVE, STOCHASTIC"));
  EXPECT_THAT(ParseError("layer { reduction_param { operation: PROD } }"),
              HasSubstr("field 'operation' of ReductionParameter has no value 'PROD'; use one of "
                        "SUM, ASUM, SUMSQ, MEAN"));
}

TEST(TextFormatTest, SaysWhichMessageAMisplacedFieldBelongsTo) {
  EXPECT_THAT(ParseError("layer { variance_norm: FAN_IN scale_bias: true }"),
              HasSubstr("LayerParameter has no field 'variance_norm'"));
  EXPECT_THAT(ParseError("layer { scale_bias: true }"),
              HasSubstr("LayerParameter has no field 'scale_bias'; it belongs inside "
                        "batch_norm_param"));
}

TEST(TextFormatTest, SuspectsTheWrongFileWhenItsFirstFieldIsTheOthers) {
  const std::string wrong_file = "; SolverParameter has one: is this the right file?";
  EXPECT_THAT(ParseError("# a solver\nnet: 'net.prototxt'\nbase_lr: 1"),
              HasSubstr("NetParameter has no field 'net'" + wrong_file));
  EXPECT_THAT(ParseError("name: 'a'\nnet: 'net.prototxt'"), Not(HasSubstr(wrong_file)));
}

TEST(TextFormatTest, SuspectsAMissingBraceWhereALayerBeginsWithinAnother) {
  EXPECT_THAT(ParseError("layer {\n  name: 'a'\nlayer {\n  name: 'b'\n}\n"),
              AllOf(StartsWith("net.prototxt:3:1: in layer 'a': "),
                    HasSubstr("is a '}' missing before it, for the '{' of line 1?")));
  EXPECT_THAT(ParseError("layer {\n  pooling_param {\n    pad: 1\n}\nlayer { }\n"),
              HasSubstr("is a '}' missing before it, for the '{' of line 1?"));
}

TEST(TextFormatTest, SuspectsAMissingBraceWhereAFieldIsOneOfAMessageAround) {
  EXPECT_THAT(ParseError("layer {\n  name: 'a'\n  include {\n    phase: TRAIN\n"
                         "  transform_param { mirror: true }\n}\n"),
              AllOf(StartsWith("net.prototxt:5:3: in layer 'a': NetStateRule has no field "
                               "'transform_param'"),
                    HasSubstr("is a '}' missing before it, for the '{' of line 3?")));
  EXPECT_THAT(ParseError("layer {\n  include {\n    phase: TRAIN\n  top: 'a'\n}\n"),
              HasSubstr("is a '}' missing before it, for the '{' of line 2?"));
}

TEST(TextFormatTest, PassesOverAByteOrderMark) {
  NetParameter net;
  ParseTextProto("\xef\xbb\xbfname: 'a'\r\n", "net.prototxt", &net);
  EXPECT_EQ(net.name(), "a");
}

TEST(TextFormatTest, ExplainsMixedUpLayerSyntaxes) {
  EXPECT_THAT(ParseError("layer { type: CONVOLUTION }"), HasSubstr("type: \"Convolution\""));
  EXPECT_THAT(ParseError("layers { type: 'Convolution' }"),
              HasSubstr("'layer { ... }' instead of 'layers { ... }'"));
}

TEST(TextFormatTest, LocatesSyntaxErrorsAndUnclosedBraces) {
  EXPECT_THAT(ParseError("name: 'a'\nlayer {\n  name 'b'\n}"), StartsWith("net.prototxt:3:8: "));
  EXPECT_THAT(ParseError("layer {\n  name: 'b'\n"), StartsWith("net.prototxt:3:1: "));
}

TEST(TextFormatTest, SaysWhatAFieldTakesAndWhatItGot) {
  const auto conv = [](const std::string& text) {
    return ParseError("layer { convolution_param { " + text + " kernel_size: 3 } }");
  };
  const std::string takes =
      "field 'num_output' of ConvolutionParameter takes a whole number, "
      "0 or more, got ";
  EXPECT_THAT(conv("num_output: 4.5"), StartsWith("net.prototxt:1:41: " + takes + "4.5\n"));
  EXPECT_THAT(conv("num_output: -4"), HasSubstr(takes + "-4\n"));
  EXPECT_THAT(conv("num_output: '4'"), HasSubstr(takes + "'4'\n"));
  EXPECT_THAT(conv("num_output: 99999999999"), HasSubstr(takes + "99999999999\n"));
  EXPECT_THAT(conv("num_output: }"), HasSubstr(takes + "nothing\n"));
  EXPECT_THAT(conv("pad: [1, 'x']"),
              HasSubstr("field 'pad' of ConvolutionParameter takes a whole number, 0 or more, got "
                        "'x'"));
  EXPECT_THAT(conv("bias_term: yes"), HasSubstr("takes true or false, got yes\n"));
  EXPECT_THAT(ParseError("layer { relu_param { negative_slope: 'x' } }"),
              HasSubstr("'negative_slope' of ReLUParameter takes a number, got 'x'\n"));
  EXPECT_THAT(ParseError("name: LeNet"), HasSubstr("takes a text between quotes, got LeNet; write "
                                                   "name: \"LeNet\"\n"));
}

TEST(TextFormatTest, ExplainsWhatCannotBeginAField) {
  EXPECT_THAT(ParseError("layer { dropout_param { dropout_ratio: 0,5 } }"),
              HasSubstr("the name of a field is expected after the comma, got 5; the fraction of a "
                        "number comes after a point, as in 0.5"));
  EXPECT_THAT(ParseError("layer { }\n}"),
              StartsWith("net.prototxt:2:1: this '}' closes nothing; remove it"));
  EXPECT_THAT(ParseError("layer {\n  include {\n"), HasSubstr("the '{' of line 2 has no '}'"));
  EXPECT_THAT(ParseError("name: 'a' // b"), HasSubstr("a comment begins with #"));
  EXPECT_THAT(ParseError("name = 'a'"), HasSubstr("a ':' comes between a field and its value"));
  EXPECT_THAT(ParseError("name: 'a' name: 'b'"), HasSubstr("multiple times; keep one"));
  EXPECT_THAT(ParseError("name: 'a"), HasSubstr("is the closing quote missing?"));
}

TEST(TextFormatTest, NamesMissingRequiredFields) {
  EXPECT_THAT(ParseError("layer { clip_param { min: 0 } }"), HasSubstr("clip_param.max"));
}

TEST(TextFormatTest, RefusesBinaryInput) {
  EXPECT_THAT(ParseError(std::string("\x0a\x03net\0\x01", 7)),
              HasSubstr("net.prototxt: this is not text (byte 6 of 7 is 0)"));
}

TEST(TextFormatTest, NamesFilesOfOtherKinds) {
  EXPECT_THAT(ParseError("<!DOCTYPE html>\n<html></html>"),
              HasSubstr("net.prototxt:1:1: this is a web page (HTML); download the file itself"));
  EXPECT_THAT(ParseError("\n  <html><body>name: 'a'</body></html>"), HasSubstr("a web page"));
  EXPECT_THAT(ParseError("layer { name: 'a' < }"), Not(HasSubstr("a web page")));
  for (const std::string& text :
       {std::string("\xff\xfen\0a\0", 6), std::string("\xfe\xff\0n\0a", 6)})
    EXPECT_THAT(ParseError(text), HasSubstr("net.prototxt: the text is in UTF-16"));
}

TEST(TextFormatTest, NamesLettersThatEditorsPutInstead) {
  EXPECT_THAT(ParseError("name: \xe2\x80\x9cnet\xe2\x80\x9d"),
              HasSubstr("net.prototxt:1:7: these are typographic quotes; write \" or '"));
  EXPECT_THAT(ParseError("name: \xe2\x80\x98net\xe2\x80\x99"), HasSubstr("typographic quotes"));
  EXPECT_THAT(ParseError("n\xc3\xa4me: 'net'"),
              HasSubstr("only ASCII may stand outside of quotes"));
}

TEST(TextFormatTest, NamesTheFileThatIsMissing) {
  NetParameter net;
  EXPECT_EQ(ErrorText<IoError>([&] { ReadTextProto("/nowhere/net.prototxt", &net); }),
            "/nowhere/net.prototxt: cannot open: No such file or directory");
}

TEST(TextFormatTest, ReadsBackWhatItWrites) {
  const TemporaryFolder folder;
  SolverParameter solver;
  solver.set_base_lr(0.1f);
  solver.add_test_iter(7);
  solver.mutable_net_param()->set_name("it's \"quoted\"");
  WriteTextProto(folder / "solver.prototxt", solver);
  SolverParameter copy;
  ReadTextProto(folder / "solver.prototxt", &copy);
  EXPECT_EQ(copy.SerializeAsString(), solver.SerializeAsString());
}

TEST(TextFormatTest, ReplacesWhatTheMessageHeld) {
  NetParameter net;
  net.set_name("old");
  net.add_layer();
  ParseTextProto("name: 'new'", "net.prototxt", &net);
  EXPECT_EQ(net.name(), "new");
  EXPECT_EQ(net.layer_size(), 0);
}

}  // namespace
}  // namespace caffe
