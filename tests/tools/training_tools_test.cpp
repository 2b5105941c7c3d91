// Commands related to training: find-lr, test --iterations=all, plan and train with epochs.
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/temporary_folder.hpp"
#include "tests/support/training_rows.hpp"
#include "tests/tools/run_program.hpp"

namespace {

using caffe::testing::Outcome;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class TrainingToolsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteNet(5);
    WriteSolver("");
  }
  void WriteNet(int test_batch) const {
    std::ofstream(folder_.path("net.prototxt"))
        << caffe::testing::ClassifierOfRows(train_, test_, test_batch);
  }
  void WriteSolver(const std::string& options) const {
    std::ofstream(folder_.path("solver.prototxt"))
        << "net: 'net.prototxt' base_lr: 0.05 lr_policy: 'fixed' momentum: 0.9 random_seed: 3 " +
               options;
  }
  Outcome Run(const std::string& arguments) const {
    return caffe::testing::RunProgram(folder_.path(), "caffe " + arguments);
  }
  google::protobuf::Struct Json(const std::string& arguments) const {
    const Outcome outcome = Run(arguments + " --json 2>log.txt | cat");
    google::protobuf::Struct json;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(outcome.output, &json).ok())
        << outcome.output;
    return json;
  }

  const caffe::testing::TemporaryFolder folder_;
  const std::string train_ = caffe::testing::WriteTrainingRows(folder_.path("train"), 30);
  const std::string test_ = caffe::testing::WriteTrainingRows(folder_.path("test"), 23, 100);
};

TEST_F(TrainingToolsTest, FindsARateAndWritesNoSnapshot) {
  WriteSolver("max_epoch: 2 snapshot: 1");
  const Outcome found = Run("find-lr solver.prototxt --iterations=60 --svg=rates.svg");
  EXPECT_EQ(found.status, 0) << found.output;
  EXPECT_THAT(found.output, AllOf(HasSubstr("iteration       rate"), HasSubstr("base_lr: "),
                                  Not(HasSubstr("Creating Layer"))));
  std::ostringstream svg;
  svg << std::ifstream(folder_.path("rates.svg")).rdbuf();
  EXPECT_THAT(svg.str(), HasSubstr("</svg>"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("solver_iter_1.caffemodel")));
  const google::protobuf::Struct json =
      Json("find-lr solver.prototxt --iterations=60 --lowest_lr=1e-5 --highest_lr=5");
  const auto& points = json.fields().at("points").list_value();
  ASSERT_GT(points.values_size(), 10);
  EXPECT_NEAR(points.values(0).struct_value().fields().at("rate").number_value(), 1e-5, 1e-10);
  EXPECT_GT(json.fields().at("suggestion").number_value(), 1e-5);
}

TEST_F(TrainingToolsTest, DrawsRatesOverItsOwnPicturesOnly) {
  WriteSolver("max_iter: 20");
  const std::string command = "find-lr solver.prototxt --iterations=20 --svg=";
  std::ofstream(folder_.path("mine.svg")) << "<?xml version='1.0'?><svg/>";
  EXPECT_THAT(Run(command + "mine.svg").output,
              HasSubstr("mine.svg: already exists, and this command has not written it"));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Run(command + "rates.svg").status, 0);
}

TEST_F(TrainingToolsTest, RefusesRateTestsThatCannotBe) {
  EXPECT_THAT(Run("find-lr").output, HasSubstr("--solver is missing"));
  EXPECT_EQ(Run("find-lr").status, 1);
  EXPECT_THAT(Run("find-lr solver.prototxt --iterations=3").output,
              HasSubstr("has 3 iterations; give at least 10"));
  EXPECT_THAT(Run("find-lr solver.prototxt --lowest_lr=2 --highest_lr=1").output,
              HasSubstr("the highest rate is 1; it must be above the lowest one, 2"));
}

// The mean that 23 batches of one record would give.
TEST_F(TrainingToolsTest, ScoresAllRecords) {
  WriteSolver("max_iter: 4");
  ASSERT_EQ(Run("train solver.prototxt").status, 0);
  const auto score = [&](const std::string& iterations) {
    const google::protobuf::Struct json =
        Json("test net.prototxt --weights=solver_iter_4.caffemodel --iterations=" + iterations);
    return json.fields().at("nets").list_value().values(0).struct_value();
  };
  const auto mean = [](const google::protobuf::Struct& net, int output) {
    const auto& outputs = net.fields().at("outputs").list_value();
    return outputs.values(output).struct_value().fields().at("mean").number_value();
  };
  WriteNet(1);
  const google::protobuf::Struct want = score("23");
  for (const int batch : {1, 5, 23, 30}) {
    WriteNet(batch);
    const google::protobuf::Struct net = score("all");
    EXPECT_EQ(net.fields().at("records").number_value(), 23);
    EXPECT_EQ(net.fields().at("iterations").number_value(), (23 + batch - 1) / batch);
    EXPECT_NEAR(mean(net, 0), mean(want, 0), 1e-6) << batch;
    EXPECT_NEAR(mean(net, 1) / mean(want, 1), 1, 1e-5) << batch;
    EXPECT_NEAR(net.fields().at("loss").number_value() / want.fields().at("loss").number_value(), 1,
                1e-5);
  }
}

TEST_F(TrainingToolsTest, SaysWhichIterationsThereAre) {
  const auto output = [&](const std::string& iterations) {
    return Run("test net.prototxt --weights=none.caffemodel --iterations=" + iterations).output;
  };
  EXPECT_THAT(output("al"), HasSubstr("--iterations is al; give a number of batches"));
  EXPECT_THAT(output("-3"), HasSubstr("--iterations is -3;"));
  EXPECT_THAT(output("3x"), HasSubstr("--iterations is 3x;"));
}

TEST_F(TrainingToolsTest, TrainsAndPlansEpochs) {
  WriteSolver("max_epoch: 2 metric: 'accuracy' ema_decay: 0.9 display: 4");
  const Outcome train = Run("train solver.prototxt --run_dir=run");
  EXPECT_EQ(train.status, 0) << train.output;
  EXPECT_THAT(train.output,
              AllOf(HasSubstr("max_epoch 2: 15 iterations, 7.5 for each pass over 30 records"),
                    HasSubstr("each of 23 records is scored once, in 5 batches of 5"),
                    HasSubstr("Iteration 15, Testing net (#0)"), HasSubstr(", gradient norm = ")));
  for (const char* name : {"solver_iter_15.caffemodel", "solver_best.caffemodel"})
    EXPECT_TRUE(std::filesystem::exists(folder_.path(name))) << name;
  // The solver stored in the folder can be trained again.
  std::ostringstream solver, metrics;
  solver << std::ifstream(folder_.path("run/solver.prototxt")).rdbuf();
  EXPECT_THAT(solver.str(), HasSubstr("max_epoch: 2"));
  metrics << std::ifstream(folder_.path("run/metrics.jsonl")).rdbuf();
  EXPECT_THAT(metrics.str(), HasSubstr("\"gradient_norm\":"));
  EXPECT_EQ(Run("train run/solver.prototxt").status, 0);
  EXPECT_EQ(Run("plan solver.prototxt").status, 0);
}

// The state of the best model may be the only one that is left.
TEST_F(TrainingToolsTest, ResumesFromTheBestModel) {
  WriteSolver("max_epoch: 2 metric: 'accuracy' display: 4");
  ASSERT_EQ(Run("train solver.prototxt").status, 0);
  for (const char* file : {"solver_iter_15.caffemodel", "solver_iter_15.solverstate"})
    std::filesystem::remove(folder_.path(file));
  const std::string resume = "train solver.prototxt --auto_resume --set max_epoch=3";
  EXPECT_THAT(Run(resume).output, HasSubstr("solver_best.solverstate"));
  // Without a state, training from scratch would replace the model.
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path("."))) {
    if (entry.path().extension() == ".solverstate") std::filesystem::remove(entry.path());
  }
  const Outcome refused = Run(resume);
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.output,
              AllOf(HasSubstr("solver_best.caffemodel: is the best model of an earlier training"),
                    HasSubstr("--weights=")));
  EXPECT_EQ(Run(resume + " --weights=solver_best.caffemodel").status, 0);
}

}  // namespace
