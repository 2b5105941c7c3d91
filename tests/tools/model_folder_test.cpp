// Runs commands on a model's folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <string>

#include "caffe/io/binary_format.hpp"
#include "caffe/proto/caffe.pb.h"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/run_program.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;

constexpr const char* kDeploy = R"(
  layer { name: "data" type: "Input" top: "data"
          input_param { shape { dim: 1 dim: 3 dim: 4 dim: 6 } } }
  layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
          inner_product_param { num_output: 2 } })";

constexpr const char* kTrained = R"(
  name: "line"
  layer { name: "data" type: "DummyData" top: "data" top: "wanted"
    dummy_data_param { shape { dim: 1 dim: 3 dim: 4 dim: 6 } shape { dim: 1 dim: 2 } } }
  layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
    inner_product_param { num_output: 2 } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "wanted" top: "loss" })";

// A path is an argument of the shell in double quotes.
class ModelFolderTest : public ::testing::Test {
 protected:
  void SetUp() override { cv::imwrite(folder_.path("red.png"), cv::Mat(4, 6, CV_8UC3, 9)); }

  void Make(const std::string& model) const {
    std::filesystem::create_directories(folder_.path(model + "/snapshots"));
    const auto write = [&](const std::string& name, const std::string& text) {
      std::ofstream(folder_.path(model + "/" + name)) << text;
    };
    write("solver.prototxt",
          "net: 'train_val.prototxt' base_lr: 0.1 lr_policy: 'fixed' max_iter: 9 "
          "snapshot_prefix: 'snapshots/m'");
    write("train_val.prototxt", kDeploy);
    write("deploy.prototxt", kDeploy);
  }

  // Weights of the layer `ip` with this many outputs.
  void Weigh(const std::string& file, int outputs = 2) const {
    NetParameter net;
    LayerParameter* const layer = net.add_layer();
    layer->set_name("ip");
    BlobProto* const weights = layer->add_blobs();
    weights->mutable_shape()->add_dim(outputs);
    weights->mutable_shape()->add_dim(72);
    weights->mutable_data()->Resize(outputs * 72, 1);
    BlobProto* const bias = layer->add_blobs();
    bias->mutable_shape()->add_dim(outputs);
    bias->mutable_data()->Resize(outputs, 0);
    WriteBinaryProto(folder_.path(file), net);
  }

  Outcome Run(const std::string& command) const {
    return testing::RunProgram(folder_.path(""), "caffe " + command);
  }

  const testing::TemporaryFolder folder_;
};

TEST_F(ModelFolderTest, ItsPathMayHaveCommasAndBlanks) {
  for (const std::string model : {"a,b", " blank, comma "}) {
    Make(model);
    Weigh(model + "/snapshots/m_best.caffemodel");
    Weigh("w,1.caffemodel");
    const Outcome outcome = Run("classify \"" + model + "\" red.png");
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    const Outcome given = Run("classify \"" + model + "\" red.png --weights=w,1.caffemodel");
    EXPECT_EQ(given.status, 0) << given.output;
    EXPECT_THAT(given.output, HasSubstr("Finetuning from w,1.caffemodel"));
  }
  const Outcome list =
      Run("classify a,b red.png --weights=w,1.caffemodel,a,b/snapshots/m_best.caffemodel");
  EXPECT_THAT(list.output, AllOf(HasSubstr("Finetuning from w,1.caffemodel\n"),
                                 HasSubstr("Finetuning from a,b/snapshots/m_best.caffemodel\n")));
}

TEST_F(ModelFolderTest, WeightsWithoutTheirStateAreTaken) {
  Make("m");
  EXPECT_THAT(Run("classify m red.png").output, HasSubstr("m: holds no weights yet"));
  Weigh("m/snapshots/m_iter_9.caffemodel");
  Weigh("m/snapshots/m_iter_10.caffemodel");
  Weigh("m/snapshots/other_iter_99.caffemodel");
  EXPECT_THAT(Run("classify m red.png").output, HasSubstr("m_iter_10.caffemodel"));
  Weigh("m/snapshots/m_best.caffemodel");
  EXPECT_THAT(Run("classify m red.png").output, HasSubstr("m_best.caffemodel"));
}

TEST_F(ModelFolderTest, WeightsOfAnotherNetSayHowToRenewTheDeployNet) {
  Make("m");
  Weigh("m/snapshots/m_best.caffemodel", 3);
  EXPECT_THAT(
      Run("classify m red.png").output,
      AllOf(HasSubstr("m/deploy.prototxt: is older than the weights, which were trained with "
                      "another net; make it again: caffe deploy m/train_val.prototxt --force "
                      "--output=m/deploy.prototxt"),
            HasSubstr("the file has shape 3x72, the net 2x72"), Not(HasSubstr("from scratch"))));
}

TEST_F(ModelFolderTest, CommandsTakeTheSolverOrTheNetThatTheyNeed) {
  Make("m");
  std::ofstream(folder_.path("m/train_val.prototxt")) << kTrained;
  EXPECT_THAT(Run("test m").output, HasSubstr("m: holds no weights yet"));
  Make("it's m");
  EXPECT_THAT(Run("test \"it's m\"").output, HasSubstr(": caffe train 'it'\"'\"'s m'"));
  Weigh("m/snapshots/m_best.caffemodel");
  for (const char* command :
       {"plan m", "plan --solver=m", "time m --iterations=1", "time m --iterations=1 --phase=test",
        "test m --iterations=1", "find-lr m --iterations=10 --svg=rates.svg"}) {
    const Outcome outcome = Run(command);
    EXPECT_EQ(outcome.status, 0) << command << "\n" << outcome.output;
  }
  EXPECT_TRUE(std::filesystem::exists(folder_.path("rates.svg")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("m/rates.svg")));
}

TEST_F(ModelFolderTest, TrainingLogsNoDefinitionsAndSaysWhatComesNext) {
  Make("m");
  std::ofstream(folder_.path("m/train_val.prototxt")) << kTrained;
  EXPECT_THAT(Run("train m --set max_iter=1").output, Not(HasSubstr("next:")));
  std::ofstream(folder_.path("m/solver.prototxt"), std::ios::app)
      << " metric: 'loss' test_interval: 3 test_iter: 1";
  const Outcome outcome = Run("train m");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("train_val.prototxt: 3 layers, 146 parameters"),
                    HasSubstr("next:  caffe evaluate m\n"), Not(HasSubstr("Creating Layer")),
                    Not(HasSubstr("base_lr: 0.1"))));
  EXPECT_TRUE(std::filesystem::exists(folder_.path("m/runs/1/train_net.prototxt")));
}

TEST_F(ModelFolderTest, CommandsThatTakeAFileSayWhichToGive) {
  Make("m");
  for (const char* command : {"compile m --output=x", "check-layer m", "test m,m --weights=w"}) {
    EXPECT_THAT(Run(command).output, HasSubstr("m: is a folder; give a file. Paths in a model's "
                                               "folder begin there: cd m and give "
                                               "train_val.prototxt"))
        << command;
  }
}

TEST_F(ModelFolderTest, AMistypedNameIsAnsweredByTheNearestBesideIt) {
  Make("photos_model");
  EXPECT_THAT(Run("train photo_model").output,
              HasSubstr("photo_model: cannot open: No such file or directory; did you mean "
                        "'photos_model'?"));
  EXPECT_THAT(Run("plan photos_model/solvr.prototxt").output,
              HasSubstr("; did you mean 'photos_model/solver.prototxt'?"));
  for (const char* other : {"far_away.prototxt", "photos_model/nothing.prototxt"})
    EXPECT_THAT(Run(std::string("train ") + other).output, Not(HasSubstr("did you mean"))) << other;
}

}  // namespace
}  // namespace caffe
