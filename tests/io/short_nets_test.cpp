// Nets with includes, blocks and defaults: what they mean. Mistakes are in short_net_errors_test.
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/expand/expand.hpp"
#include "caffe/io/layer_position.hpp"
#include "caffe/io/net_files.hpp"
#include "caffe/io/solver_position.hpp"
#include "caffe/io/text_format.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/folders.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;
using testing::ErrorText;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

constexpr const char* kConvBlock = R"net(
block {
  name: "conv"
  argument { name: "width" }
  argument { name: "stride" default: 1 }
  layer {
    name: "conv" type: "Convolution" bottom: "$in" top: "y" param { name: "w" }
    convolution_param { num_output: $width stride: $stride }
  }
  layer { name: "relu" type: "ReLU" bottom: "y" top: "$out" }
}
)net";

class ShortNetsTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) const {
    WriteFileAtomically(folder_ / name, text);
  }
  std::string Path() const { return folder_ / "net.prototxt"; }
  NetParameter Read(const std::string& text) const {
    Write("net.prototxt", text);
    return ReadNetText(Path());
  }
  // The net is that of the plain text.
  void ExpectNet(const std::string& text, const std::string& plain) const {
    NetParameter expected;
    ParseTextProto(plain, "plain", &expected);
    const NetParameter net = Read(text);
    EXPECT_TRUE(MessageDifferencer::Equals(net, expected)) << net.DebugString();
  }

  const TemporaryFolder folder_;
};

TEST_F(ShortNetsTest, ABlockIsExpandedInItsPlace) {
  ExpectNet(std::string(kConvBlock) + R"net(
layer { name: "first" type: "ReLU" }
use { block: "conv" name: "c1" bottom: "data" top: "out" width: 8 stride: 2 }
layer { name: "last" type: "ReLU" bottom: "out" }
)net",
            R"net(
layer { name: "first" type: "ReLU" }
layer { name: "c1/conv" type: "Convolution" bottom: "data" top: "c1/y" param { name: "c1/w" }
        convolution_param { num_output: 8 stride: 2 } }
layer { name: "c1/relu" type: "ReLU" bottom: "c1/y" top: "out" }
layer { name: "last" type: "ReLU" bottom: "out" }
)net");
}

TEST_F(ShortNetsTest, RepetitionsAreAChain) {
  ExpectNet(R"net(
block {
  name: "b"
  argument { name: "width" }
  layer { name: "a" type: "ReLU" bottom: "$in" bottom: "$in2" top: "$out"
          convolution_param { num_output: $(width * index) } }
}
use { block: "b" name: "s" bottom: "data" bottom: "mask" width: 4 repeat: 3 }
)net",
            R"net(
layer { name: "s/1/a" type: "ReLU" bottom: "data" bottom: "mask" top: "s/1"
        convolution_param { num_output: 4 } }
layer { name: "s/2/a" type: "ReLU" bottom: "s/1" bottom: "mask" top: "s/2"
        convolution_param { num_output: 8 } }
layer { name: "s/3/a" type: "ReLU" bottom: "s/2" bottom: "mask" top: "s"
        convolution_param { num_output: 12 } }
)net");
}

TEST_F(ShortNetsTest, SeveralTopsAreReadByTheNextRepetition) {
  ExpectNet(R"net(
block { name: "b" layer { name: "a" bottom: ["$in", "$in2"] top: "$out" top: "$out2" } }
use { block: "b" name: "s" bottom: "x" bottom: "y" top: "p" top: "q" repeat: 2 }
)net",
            R"net(
layer { name: "s/1/a" bottom: "x" bottom: "y" top: "s/1" top: "s/1/out2" }
layer { name: "s/2/a" bottom: "s/1" bottom: "s/1/out2" top: "p" top: "q" }
)net");
}

TEST_F(ShortNetsTest, BlocksUseBlocks) {
  ExpectNet(std::string(kConvBlock) + R"net(
block {
  name: "two"
  argument { name: "width" }
  argument { name: "inner" default: $(width / 4) }
  argument { name: "skip" default: "/data" }
  use { block: "conv" name: "a" bottom: "$in" width: $inner }
  use { block: "conv" name: "b" bottom: "a" top: "$out" width: $width }
  layer { name: "sum" bottom: "$out" bottom: "$skip" top: "/total" }
}
use { block: "two" name: "t" bottom: "data" width: 8 }
)net",
            R"net(
layer { name: "t/a/conv" type: "Convolution" bottom: "data" top: "t/a/y" param { name: "t/a/w" }
        convolution_param { num_output: 2 stride: 1 } }
layer { name: "t/a/relu" type: "ReLU" bottom: "t/a/y" top: "t/a" }
layer { name: "t/b/conv" type: "Convolution" bottom: "t/a" top: "t/b/y" param { name: "t/b/w" }
        convolution_param { num_output: 8 stride: 1 } }
layer { name: "t/b/relu" type: "ReLU" bottom: "t/b/y" top: "t" }
layer { name: "t/sum" bottom: "t" bottom: "data" top: "total" }
)net");
}

// A blob that is an argument has the name that it has where the use stands, at any depth.
TEST_F(ShortNetsTest, ArgumentsCarryBlobs) {
  ExpectNet(R"net(
block { name: "in" argument { name: "skip" } argument { name: "more" }
        layer { name: "a" bottom: "$skip" bottom: $more bottom: "own" top: "$out" } }
block { name: "out" argument { name: "skip" }
        layer { name: "b" top: "own" }
        use { block: "in" name: "i" skip: "own" more: ["$skip", "own"] }
        use { block: "in" name: "j" skip: "$skip" more: $skip top: "$out" } }
use { block: "out" name: "o" skip: "data" }
)net",
            R"net(
layer { name: "o/b" top: "o/own" }
layer { name: "o/i/a" bottom: "o/own" bottom: "data" bottom: "o/own" bottom: "o/i/own" top: "o/i" }
layer { name: "o/j/a" bottom: "data" bottom: "data" bottom: "o/j/own" top: "o" }
)net");
}

TEST_F(ShortNetsTest, ArgumentsAreAnyValue) {
  ExpectNet(R"net(
block {
  name: "b"
  argument { name: "filler" default: { type: "msra" } }
  argument { name: "sizes" default: [3, 5] }
  argument { name: "bias" default: true }
  argument { name: "shift" default: -1 }
  argument { name: "pool" default: MAX }
  argument { name: "label" default: "a\"b" }
  layer {
    name: "${label}_${index}_x$$" type: "T$(1 + 2)"
    convolution_param { weight_filler: $filler kernel_size: $sizes bias_term: $bias axis: $shift }
    pooling_param {
  pool:
    $pool pad : $((2 + 3) * -shift - 4) }
}
}
use { block: "b" name: "u" }
use { block: "b" name: "v" filler { type: "gaussian" std: 0.1 } sizes: 7 bias: false label: 'c' }
)net",
            R"net(
layer { name: "u/a\"b_1_x$" type: "T3"
        convolution_param { weight_filler { type: "msra" } kernel_size: 3 kernel_size: 5
                            bias_term: true axis: -1 }
        pooling_param { pool: MAX pad: 1 } }
layer { name: "v/c_1_x$" type: "T3"
        convolution_param { weight_filler { type: "gaussian" std: 0.1 } kernel_size: 7
                            bias_term: false axis: -1 }
        pooling_param { pool: MAX pad: 1 } }
)net");
}

TEST_F(ShortNetsTest, DefaultsAreForTheLayersAfterThem) {
  ExpectNet(std::string(kConvBlock) + R"net(
layer { name: "before" type: "Convolution" }
defaults { type: "Convolution" param { lr_mult: 1 } param { lr_mult: 2 }
           convolution_param { stride: 3 bias_term: false weight_filler { type: "msra" } } }
layer { name: "own" type: "Convolution" param { lr_mult: 5 } convolution_param { stride: 1 } }
layer { name: "other" type: "ReLU" }
defaults { type: "Convolution" convolution_param { stride: 4 } }
use { block: "conv" name: "c" bottom: "own" width: 2 }
layer { name: "later" type: "Convolution" convolution_param { weight_filler { std: 2 } } }
)net",
            R"net(
layer { name: "before" type: "Convolution" }
layer { name: "own" type: "Convolution" param { lr_mult: 5 }
        convolution_param { stride: 1 bias_term: false weight_filler { type: "msra" } } }
layer { name: "other" type: "ReLU" }
layer { name: "c/conv" type: "Convolution" bottom: "own" top: "c/y" param { name: "c/w" }
        convolution_param { num_output: 2 stride: 1 bias_term: false
                            weight_filler { type: "msra" } } }
layer { name: "c/relu" type: "ReLU" bottom: "c/y" top: "c" }
layer { name: "later" type: "Convolution" param { lr_mult: 1 } param { lr_mult: 2 }
        convolution_param { stride: 4 bias_term: false weight_filler { type: "msra" std: 2 } } }
)net");
}

// A layer that has conditions itself keeps them; blocks within the block take the use's.
TEST_F(ShortNetsTest, AUseHasConditions) {
  ExpectNet(
      R"net(
block { name: "act" layer { name: "relu" type: "ReLU" bottom: "$in" top: "$out" } }
block {
  name: "head"
  argument { name: "phase" }
  layer { name: "a" type: "Power" bottom: "$in" top: "a" }
  layer { name: "b" type: "Power" bottom: "a" top: "b" exclude { stage: "x" } }
  use { block: "act" name: "c" bottom: "b" top: "c" }
  use { block: "act" name: "d" bottom: "c" top: "$out" include { phase: $phase stage: "y" } }
}
use { block: "head" name: "h" bottom: "x" top: "y" include { phase: TEST } phase: TRAIN }
)net",
      R"(layer { name: "h/a" type: "Power" bottom: "x" top: "h/a" include { phase: TEST } }
         layer { name: "h/b" type: "Power" bottom: "h/a" top: "h/b" exclude { stage: "x" } }
         layer { name: "h/c/relu" type: "ReLU" bottom: "h/b" top: "h/c" include { phase: TEST } }
         layer { name: "h/d/relu" type: "ReLU" bottom: "h/c" top: "y"
                 include { phase: TRAIN stage: "y" } })");
  ExpectNet(
      R"(defaults { type: "ReLU" exclude { stage: "x" } }
         block { name: "act" layer { name: "r" type: "ReLU" bottom: "$in" top: "$out" } }
         use { block: "act" name: "a" bottom: "x" top: "y" include { phase: TEST } })",
      R"(layer { name: "a/r" type: "ReLU" bottom: "x" top: "y" exclude { stage: "x" } })");
  EXPECT_THAT(ErrorText<InvalidArgument>([&] {
                Read(
                    "block { name: 'act' layer { name: 'r' type: 'ReLU' bottom: '$in' "
                    "top: '$out' } } use { block: 'act' name: 'a' bottom: 'x' include: 'f' }");
              }),
              HasSubstr("write include { phase: TRAIN }"));
}

TEST_F(ShortNetsTest, FilesAreIncludedWhereTheyAreNamed) {
  std::filesystem::create_directories(folder_ / "parts");
  Write("parts/all.prototxt", "include: 'conv.prototxt' layer { name: 'of_all' }");
  Write("parts/conv.prototxt", kConvBlock);
  Write("top.prototxt", "layer { name: 'of_top' }");
  const NetParameter net = Read(
      "layer { name: 'a' } include: 'parts/all.prototxt' include: 'parts/conv.prototxt'\n"
      "include: 'parts/../top.prototxt' use { block: 'conv' name: 'c' bottom: 'a' width: 1 }");
  std::vector<std::string> names;
  for (const LayerParameter& layer : net.layer()) names.push_back(layer.name());
  EXPECT_THAT(names, ElementsAre("a", "of_all", "of_top", "c/conv", "c/relu"));
}

TEST_F(ShortNetsTest, PlainTextsStayAsTheyAre) {
  for (const char* text :
       {"# use { x }\nlayer { name: 'a$b'  include { phase: TRAIN } }\n",
        "layer { name: 'a' include: { phase: TEST } batch_norm_param { use_global_stats: true } }",
        "name: 'use { block: }'"}) {
    Write("net.prototxt", text);
    const SourceText read = ReadDefinitionText(Path(), *NetParameter::descriptor());
    EXPECT_EQ(read.text(), text);
    EXPECT_FALSE(read.is_expanded());
    EXPECT_EQ(KindOfDefinition(Path()) == DefinitionKind::kUnknown, text[0] == 'n');
  }
}

// The printed text can be read again, here and by Caffe.
TEST_F(ShortNetsTest, TheExpandedTextIsTheNet) {
  for (const char* name : {"resnet20", "vit"}) {
    const std::string file = testing::SourcePath("examples/short_nets/") + name + ".prototxt";
    const SourceText text = ReadDefinitionText(file, *NetParameter::descriptor());
    EXPECT_FALSE(HasShortNet(text.text(), *NetParameter::descriptor()));
    EXPECT_EQ(text.text().find('$'), std::string::npos);
    NetParameter plain;
    ParseTextProto(text.text(), "expanded", &plain);
    EXPECT_TRUE(MessageDifferencer::Equals(plain, ReadNetText(file))) << name;
    EXPECT_EQ(KindOfDefinition(file), DefinitionKind::kNet);
  }
}

TEST_F(ShortNetsTest, AUseAloneIsANet) {
  Write("net.prototxt", "include: 'x.prototxt' use { block: 'b' name: 'u' width: $x }");
  EXPECT_EQ(KindOfDefinition(Path()), DefinitionKind::kNet);
}

TEST_F(ShortNetsTest, NetsInSolversAreExpanded) {
  Write("conv.prototxt", kConvBlock);
  Write("solver.prototxt",
        "net_param {\n"
        "  include: 'conv.prototxt'\n"
        "  use { block: 'conv' name: 'c' bottom: 'x' width: 3 }\n"
        "}\n"
        "test_net_param { layer { name: 'a' } }\n"
        "  base_lr: 0.5");
  const SolverParameter solver = ReadSolverText(folder_ / "solver.prototxt");
  EXPECT_EQ(solver.net_param().layer(1).name(), "c/relu");
  EXPECT_EQ(solver.test_net_param(0).layer_size(), 1);
  EXPECT_EQ(solver.base_lr(), 0.5f);
  EXPECT_EQ(KindOfDefinition(folder_ / "solver.prototxt"), DefinitionKind::kSolver);
  EXPECT_EQ(PositionOfSolverField(folder_ / "solver.prototxt", "solver: base_lr is 0.5").place,
            folder_ / "solver.prototxt" + ":6:3");
}

TEST_F(ShortNetsTest, LayersAreFoundWhereTheyWereWritten) {
  Write("conv.prototxt", kConvBlock);
  Write("net.prototxt",
        "include: 'conv.prototxt'\n"
        "  layer { name: 'a' }\n"
        "\tuse { block: 'conv' name: 'c' bottom: 'a' width: 3 repeat: 2 }\n");
  const auto fail = [&](const char* message) {
    return ErrorText<Unsupported>(
        [&] { WithLayerPosition(Path(), TRAIN, [&] { throw Unsupported(message); }); });
  };
  EXPECT_EQ(fail("layer 'a': no kernel"), Path() + ":2:3: layer 'a': no kernel");
  EXPECT_EQ(fail("layer 'c/2/relu': no kernel"),
            folder_ / "conv.prototxt" + ":10:3: layer 'c/2/relu': no kernel; used at " + Path() +
                ":3:2 (repeat 2 of 2)");
}

TEST_F(ShortNetsTest, MistakesOfParsingAreFoundWhereTheyWereWritten) {
  Write("conv.prototxt",
        "block {\n"
        "  name: 'conv'\n"
        "  argument { name: 'width' }\n"
        "  layer { name: 'x' convolution_param { num_outputs: $width } }\n"
        "}\n");
  Write("net.prototxt",
        "include: 'conv.prototxt'\n"
        "block { name: 'outer' use { block: 'conv' name: 'in' width: 1 } }\n"
        "use { block: 'outer' name: 'c' }\n");
  EXPECT_EQ(ErrorText<InvalidArgument>([&] { ReadNetText(Path()); }),
            folder_ / "conv.prototxt" +
                ":4:41: in layer 'c/in/x': ConvolutionParameter has no field 'num_outputs'; did "
                "you mean 'num_output'?; used at " +
                Path() + ":2:23, used at " + Path() +
                ":3:1\n"
                "    layer { name: 'x' convolution_param { num_outputs: $width } }\n"
                "                                          ^");
}

// Fields that this version does not know are left out of blocks as well.
TEST_F(ShortNetsTest, LenientReadingExpands) {
  const LenientReading lenient;
  ::testing::internal::CaptureStderr();
  const NetParameter net = Read(
      "defaults { type: 'Strange' strange_param { x: 1 } }\n"
      "block { name: 'b' layer { name: 'a' type: 'Strange' odd: 1 } }\n"
      "use { block: 'b' name: 'u' }");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("net.prototxt:2:53: in layer 'u/a'"));
  EXPECT_EQ(net.layer(0).name(), "u/a");
}

}  // namespace
}  // namespace caffe
