#include "caffe/solvers/weight_average.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "caffe/error.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/solver_factory.hpp"
#include "caffe/solver_group.hpp"
#include "caffe/training_observer.hpp"
#include "caffe/training_plan.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/exact_resume.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/training_rows.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;

class AveragedTests final : public TrainingObserver {
 public:
  void OnTest(const TestReport& report) override { losses.push_back(report.loss); }
  std::vector<double> losses;
};

class WeightAverageTest : public ::testing::Test {
 protected:
  SolverParameter Parse(const std::string& options) const {
    SolverParameter solver;
    ParseTextProto(options + " base_lr: 0.05 lr_policy: 'fixed' momentum: 0.9 random_seed: 3 " +
                       "solver_mode: CPU snapshot_prefix: '" + folder_.path("run") +
                       "' net_param { " + testing::ClassifierOfRows(train_, test_, 5) + " }",
                   "test", &solver);
    return solver;
  }

  // The values of the first parameter of a layer.
  static std::vector<float> ValuesOf(const Net& net, const std::string& layer) {
    const Blob& blob = *net.layer_params(layer).at(0);
    return {blob.cpu_data(), blob.cpu_data() + blob.count()};
  }
  static std::vector<float> ValuesOf(const std::string& file, const std::string& layer) {
    NetParameter net;
    ReadBinaryProto(file, &net);
    for (const LayerParameter& one : net.layer()) {
      if (one.name() == layer) return {one.blobs(0).data().begin(), one.blobs(0).data().end()};
    }
    return {};
  }

  const testing::TemporaryFolder folder_, data_;
  const std::string train_ = testing::WriteTrainingRows(data_.path("train"), 30);
  const std::string test_ = testing::WriteTrainingRows(data_.path("test"), 23, 100);
};

// average = d * average + (1 - d) * parameter with d = min(decay, (1 + u) / (10 + u)) in update u.
TEST_F(WeightAverageTest, FollowsTheFormula) {
  for (const double decay : {0.3, 0.999}) {
    Solver solver(Parse(StrCat("ema_decay: ", decay)));
    std::vector<float> average = ValuesOf(solver.net(), "ip1");
    for (int update = 1; update <= 7; ++update) {
      solver.Step(1);
      const std::vector<float> weights = ValuesOf(solver.net(), "ip1");
      const double d =
          std::min<double>(static_cast<float>(decay), (1.0 + update) / (10.0 + update));
      for (size_t i = 0; i < average.size(); ++i)
        average[i] = static_cast<float>(d * average[i] + (1 - d) * weights[i]);
      solver.Snapshot();
      EXPECT_EQ(ValuesOf(solver.net(), "ip1"), weights) << "training goes on with the weights";
      EXPECT_EQ(ValuesOf(folder_.path(StrCat("run_iter_", update, ".caffemodel")), "ip1"), average)
          << update;
    }
  }
}

// The file contains the net's statistics.
TEST_F(WeightAverageTest, CopiesRunningStatistics) {
  Solver solver(Parse("ema_decay: 0.9"));
  solver.Step(5);
  solver.Snapshot();
  EXPECT_EQ(ValuesOf(folder_.path("run_iter_5.caffemodel"), "norm"),
            ValuesOf(solver.net(), "norm"));
  EXPECT_NE(ValuesOf(folder_.path("run_iter_5.caffemodel"), "ip1"), ValuesOf(solver.net(), "ip1"));
}

TEST_F(WeightAverageTest, TestsUseTheAverage) {
  for (const bool keep_all : {true, false}) {
    Solver solver(Parse("ema_decay: 0.9 test_interval: 100 test_initialization: false"),
                  {.keep_all = keep_all});
    AveragedTests tests;
    solver.AddObserver(&tests);
    solver.Step(6);
    solver.TestAll();
    solver.Snapshot();
    Solver other(Parse("test_interval: 100"), {.keep_all = keep_all});
    other.AddObserver(&tests);
    other.net().CopyTrainedLayersFrom(folder_.path("run_iter_6.caffemodel"));
    other.TestAll();
    solver.net().CopyTrainedLayersFrom(folder_.path("run_iter_6.caffemodel"));
    ASSERT_EQ(tests.losses.size(), 2u);
    EXPECT_EQ(tests.losses[0], tests.losses[1]);
  }
}

// An observer of a test may take a snapshot; the state still contains the parameters.
TEST_F(WeightAverageTest, SnapshotsWithinATestAreWhole) {
  struct Taker final : TrainingObserver {
    explicit Taker(Solver& of) : solver(of) {}
    void OnTest(const TestReport&) override { solver.Snapshot(); }
    Solver& solver;
  };
  Solver solver(Parse("ema_decay: 0.9 test_interval: 100"));
  solver.Step(3);
  solver.Snapshot();
  const std::map<std::string, std::string> want = testing::SnapshotsIn(folder_.path(""));
  const std::vector<float> weights = ValuesOf(solver.net(), "ip1");
  Taker taker(solver);
  solver.AddObserver(&taker);
  solver.TestAll();
  EXPECT_EQ(testing::SnapshotsIn(folder_.path("")), want);
  EXPECT_EQ(ValuesOf(solver.net(), "ip1"), weights);
}

// Before the first update the average equals the parameters.
TEST_F(WeightAverageTest, BeginsWithTheFirstUpdate) {
  Solver solver(Parse("ema_decay: 0.9"));
  const std::vector<float> weights = ValuesOf(solver.net(), "ip1");
  solver.Snapshot();
  EXPECT_EQ(ValuesOf(folder_.path("run_iter_0.caffemodel"), "ip1"), weights);
  solver.Restore(folder_.path("run_iter_0.solverstate"));
  EXPECT_EQ(ValuesOf(solver.net(), "ip1"), weights);
}

// If the state has parameters in addition to their average, training continues with the parameters.
TEST_F(WeightAverageTest, RunsWithoutAnAverageGoOnWithTheParameters) {
  Solver averaging(Parse("ema_decay: 0.9"));
  averaging.Step(4);
  averaging.Snapshot();
  averaging.Step(2);
  Solver plain(Parse(""));
  plain.Restore(folder_.path("run_iter_4.solverstate"));
  plain.Step(2);
  EXPECT_EQ(ValuesOf(plain.net(), "ip1"), ValuesOf(averaging.net(), "ip1"));
  plain.Snapshot();
  Solver again(Parse("ema_decay: 0.9"));
  again.Restore(folder_.path("run_iter_6.solverstate"));
  again.Step(1);
  plain.Step(1);
  EXPECT_EQ(ValuesOf(plain.net(), "ip1"), ValuesOf(again.net(), "ip1"));
}

TEST_F(WeightAverageTest, ResumesExactly) {
  for (const std::string format : {"BINARYPROTO", "HDF5"}) {
    for (const int workers : {1, 2}) {
      SCOPED_TRACE(format + " " + std::to_string(workers));
      const testing::TemporaryFolder folder;
      SolverParameter param = Parse(
          "ema_decay: 0.95 max_iter: 18 snapshot: 6 test_interval: 3 metric: 'loss' "
          "snapshot_format: " +
          format);
      param.set_snapshot_prefix(folder.path("run"));
      testing::ExpectExactResume(param, folder.path(""), 6, workers);
    }
  }
}

// The displayed loss after the last iteration is that of the parameters, and the snapshot that is
// written with it does not change them.
TEST_F(WeightAverageTest, ChangesNoStepOfTheRun) {
  const auto train = [&](const std::string& options) {
    Solver solver(Parse(options + " max_iter: 9 snapshot: 3 test_interval: 2 display: 3"),
                  {.keep_all = false});
    solver.Solve();
    return std::pair{ValuesOf(solver.net(), "ip2"), solver.smoothed_loss()};
  };
  EXPECT_EQ(train("ema_decay: 0.9"), train(""));
}

TEST_F(WeightAverageTest, ItsMemoryIsPlanned) {
  const auto solver_state = [&](const std::string& options) {
    return TrainingPlan(Parse(options), {.keep_all = false}).Memory().solver_state;
  };
  EXPECT_EQ(SolverStatesPerParameter(Parse("")), 1);
  EXPECT_EQ(SolverStatesPerParameter(Parse("ema_decay: 0.9")), 3);
  EXPECT_EQ(solver_state("ema_decay: 0.9"), 3 * solver_state(""));
}

TEST_F(WeightAverageTest, RefusesWhatItCannotKeep) {
  const auto error = [&](const std::string& options) {
    return ErrorText<InvalidArgument>([&] { Solver solver(Parse(options)); });
  };
  EXPECT_THAT(error("ema_decay: 1"), HasSubstr("ema_decay is 1;"));
  EXPECT_THAT(error("ema_decay: -0.5"), HasSubstr("ema_decay is -0.5;"));
  EXPECT_THAT(error("ema_decay: nan"), HasSubstr("ema_decay is nan;"));
  SolverParameter split = Parse("ema_decay: 0.9");
  for (LayerParameter& layer : *split.mutable_net_param()->mutable_layer()) {
    if (layer.name() == "ip2") layer.set_parallel(LayerParameter::SPLIT_OUTPUT);
  }
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { SolverGroup group(split, {.keep_all = false}, 2); }),
              HasSubstr("ema_decay 0.9 averages whole parameters"));
}

}  // namespace
}  // namespace caffe
