// Runs `caffe expand`, and other commands on short nets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/folders.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/run_program.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;
using testing::SourcePath;

constexpr const char* kBlocks = R"(
defaults { type: "InnerProduct" inner_product_param { weight_filler { type: "xavier" } } }
block {
  name: "product"
  argument { name: "width" }
  layer {
    name: "ip" type: "InnerProduct" bottom: "$in" top: "$out"
    inner_product_param { num_output: $width }
  }
}
)";
constexpr const char* kNet = R"(include: "blocks.prototxt"
layer {
  name: "x" type: "DummyData" top: "x" top: "t"
  dummy_data_param { shape { dim: 4 dim: 8 } shape { dim: 4 dim: 2 } }
}
use { block: "product" name: "p" bottom: "x" width: 2 repeat: 3 }
layer { name: "loss" type: "EuclideanLoss" bottom: "p" bottom: "t" top: "loss" }
)";

class ExpandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Write("blocks.prototxt", kBlocks);
    Write("net.prototxt", kNet);
  }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path(name)) << text;
  }
  std::string Read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_.path(name)).rdbuf();
    return text.str();
  }
  Outcome Caffe(const std::string& arguments) const {
    return testing::RunProgram(folder_.path(), "caffe " + arguments);
  }

  const testing::TemporaryFolder folder_;
};

TEST_F(ExpandTest, PrintsLayersOnly) {
  const Outcome outcome = Caffe("expand net.prototxt");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.output, HasSubstr(R"(
layer {
  name: "p/2/ip"
  type: "InnerProduct"
  bottom: "p/1"
  top: "p/2"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } }
}
)"));
  for (const char* word : {"include", "use", "block", "defaults", "$"})
    EXPECT_THAT(outcome.output, Not(HasSubstr(word)));
}

TEST_F(ExpandTest, WritesAFile) {
  EXPECT_EQ(Caffe("expand net.prototxt --output=plain.prototxt").status, 0);
  EXPECT_EQ(Read("plain.prototxt"), Caffe("expand net.prototxt").output);
  EXPECT_EQ(Caffe("expand plain.prototxt").output, Read("plain.prototxt"));
  EXPECT_THAT(Caffe("expand net.prototxt --output=plain.prototxt").output,
              HasSubstr("plain.prototxt: already exists; give --force"));
  EXPECT_THAT(Caffe("expand net.prototxt --output=./net.prototxt --force").output,
              HasSubstr("is the net to expand, which would be lost"));
  EXPECT_EQ(Read("net.prototxt"), kNet);
}

TEST_F(ExpandTest, OtherProgramsReadShortNets) {
  const std::string program = "upgrade_net_proto_text net.prototxt plain.prototxt";
  EXPECT_EQ(testing::RunProgram(folder_.path(), program).status, 0);
  EXPECT_THAT(Read("plain.prototxt"), AllOf(HasSubstr("name: \"p/3/ip\""), Not(HasSubstr("use"))));
}

TEST_F(ExpandTest, WritesNothingOfANetWithMistakes) {
  Write("net.prototxt", std::string(kNet) + "use { block: 'produkt' name: 'q' }");
  const Outcome outcome = Caffe("expand net.prototxt --output=plain.prototxt");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.output,
              HasSubstr("net.prototxt:8:7: there is no block 'produkt'; did you mean 'product'?"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("plain.prototxt")));
}

TEST_F(ExpandTest, ExpandsNetsInSolvers) {
  Write("solver.prototxt", "base_lr: 0.1\nnet_param {\n" + std::string(kNet) + "}\n");
  EXPECT_THAT(Caffe("expand solver.prototxt").output,
              AllOf(HasSubstr("base_lr: 0.1\nnet_param {\n  layer {\n    name: \"x\""),
                    HasSubstr("    name: \"p/3/ip\"")));
}

// Overrides name layers of the expanded net, and files of a run hold that net.
TEST_F(ExpandTest, TrainingKeepsTheExpandedNet) {
  Write("solver.prototxt",
        "net: 'net.prototxt' base_lr: 0.01 lr_policy: 'fixed' max_iter: 2 snapshot_prefix: 's'");
  const Outcome outcome = Caffe(
      "train solver.prototxt --run_dir=run --set 'layer[p/2/ip].inner_product_param.num_output=5'");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_THAT(Read("run/train_net.prototxt"),
              AllOf(HasSubstr("name: \"p/3/ip\""), HasSubstr("num_output: 5"),
                    Not(HasSubstr("blocks.prototxt"))));
}

// Without what depends on the names of layers: a program holds them.
std::string FiguresOfPlan(const std::string& file) {
  const Outcome outcome =
      testing::RunProgram(SourcePath(""), "caffe plan --model=" + file + " --phase=TRAIN");
  const size_t start = outcome.output.find("\nSteps:"), end = outcome.output.find("\nProgram:");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  return start < end && end != std::string::npos ? outcome.output.substr(start, end - start)
                                                 : "no figures";
}

TEST_F(ExpandTest, TheShortResnetIsTheLongOne) {
  const std::string figures = FiguresOfPlan("examples/short_nets/resnet20.prototxt");
  EXPECT_THAT(figures, HasSubstr("Parameters:   271117 "));
  EXPECT_EQ(figures, FiguresOfPlan("models/cifar10_resnet20/train_val.prototxt"));
  for (const char* file : {"resnet20", "vit"}) {
    std::ifstream text(SourcePath("examples/short_nets/") + file + ".prototxt");
    EXPECT_LT(std::count(std::istreambuf_iterator<char>(text), {}, '\n'), 120);
  }
}

}  // namespace
}  // namespace caffe
