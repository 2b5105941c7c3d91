#include "caffe/solvers/model_choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/solver_group.hpp"
#include "caffe/training_observer.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/exact_resume.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/training_rows.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::ErrorText;
using ::testing::HasSubstr;

class SeenSnapshots final : public TrainingObserver {
 public:
  void OnTest(const TestReport& report) override {
    tested = report.iteration;
    accuracies.push_back(report.outputs.at(0).values.at(0));
  }
  void OnSnapshot(const SnapshotReport& report) override {
    const std::string name = std::filesystem::path(report.state_file).filename().string();
    (name.find("_best") != std::string::npos ? best : usual).push_back(report.iteration);
  }
  void OnEnd(const TrainingEnd& report) override { end = report; }

  int tested = -1;
  std::vector<float> accuracies;
  std::vector<int> best, usual;  // iterations
  TrainingEnd end;
};

class ModelChoiceTest : public ::testing::Test {
 protected:
  SolverParameter Parse(const std::string& options) const {
    SolverParameter solver;
    ParseTextProto(options + " lr_policy: 'fixed' momentum: 0.9 random_seed: 3 solver_mode: CPU " +
                       "snapshot_prefix: '" + folder_.path("run") + "' net_param { " +
                       testing::ClassifierOfRows(train_, test_, 5) + " }",
                   "test", &solver);
    if (!solver.has_base_lr()) solver.set_base_lr(0.05f);
    return solver;
  }

  SeenSnapshots Solve(const SolverParameter& param, const std::string& from = "") const {
    Solver solver(param, {.keep_all = false});
    SeenSnapshots seen;
    solver.AddObserver(&seen);
    solver.Solve(from);
    return seen;
  }

  bool Exists(const std::string& name) const { return std::filesystem::exists(folder_.path(name)); }
  // The iterations whose pairs exist.
  std::vector<int> Kept() const {
    std::vector<int> kept;
    for (int i = 0; i <= 100; ++i) {
      const std::string stem = "run_iter_" + std::to_string(i);
      EXPECT_EQ(Exists(stem + ".caffemodel"), Exists(stem + ".solverstate")) << stem;
      if (Exists(stem + ".solverstate")) kept.push_back(i);
    }
    return kept;
  }

  std::vector<std::shared_ptr<Net>> TestNets() const {
    NetParameter net = Parse("").net_param();
    net.mutable_state()->set_phase(TEST);
    return {std::make_shared<Net>(net)};
  }

  const testing::TemporaryFolder folder_, data_;
  const std::string train_ = testing::WriteTrainingRows(data_.path("train"), 30);
  const std::string test_ = testing::WriteTrainingRows(data_.path("test"), 23, 100);
};

// Reports of a test whose output 0, accuracy, and output 1, loss, have these values.
std::vector<TestReport> ReportsOf(float accuracy, float loss = 0) {
  return {{.outputs = {{"accuracy", 0, {accuracy}}, {"loss", 1, {loss}}}}};
}

TEST_F(ModelChoiceTest, LargerIsBetterAndSmallerForLosses) {
  ModelChoice accuracy(Parse("metric: 'accuracy'"), TestNets());
  EXPECT_TRUE(accuracy.Take(0, ReportsOf(0.5)));
  EXPECT_FALSE(accuracy.Take(1, ReportsOf(0.5)));
  EXPECT_FALSE(accuracy.Take(2, ReportsOf(0.4)));
  EXPECT_TRUE(accuracy.Take(3, ReportsOf(0.6)));
  ModelChoice loss(Parse("metric: 'loss'"), TestNets());
  EXPECT_TRUE(loss.Take(0, ReportsOf(0, 2)));
  EXPECT_FALSE(loss.Take(1, ReportsOf(0, 3)));
  EXPECT_TRUE(loss.Take(2, ReportsOf(0, 1)));
  ModelChoice turned(Parse("metric: 'accuracy' metric_falls: true"), TestNets());
  EXPECT_TRUE(turned.Take(0, ReportsOf(0.5)));
  EXPECT_TRUE(turned.Take(1, ReportsOf(0.4)));
}

TEST_F(ModelChoiceTest, NoNumberIsNeverTheBest) {
  ModelChoice choice(Parse("metric: 'accuracy' early_stopping: 2"), TestNets());
  EXPECT_FALSE(choice.Take(0, ReportsOf(NAN)));
  EXPECT_TRUE(choice.Take(1, ReportsOf(0.1)));
  EXPECT_FALSE(choice.Take(2, ReportsOf(NAN)));
  EXPECT_FALSE(choice.has_ended());
  EXPECT_FALSE(choice.Take(3, ReportsOf(NAN)));
  EXPECT_TRUE(choice.has_ended());
  EXPECT_EQ(choice.WhyEnded(),
            "accuracy is best after 1 iteration (0.1), and was not better in the last 2 tests");
  ModelChoice never(Parse("metric: 'accuracy' early_stopping: 1"), TestNets());
  EXPECT_FALSE(never.Take(0, ReportsOf(NAN)));
  EXPECT_EQ(never.WhyEnded(), "accuracy was not a number in 1 test");
}

TEST_F(ModelChoiceTest, SmallGainsKeepTheModelAndCountAsNone) {
  ModelChoice choice(Parse("metric: 'accuracy' early_stopping: 2 early_stopping_delta: 0.125"),
                     TestNets());
  EXPECT_TRUE(choice.Take(0, ReportsOf(0.5)));
  EXPECT_TRUE(choice.Take(1, ReportsOf(0.5625)));
  EXPECT_FALSE(choice.has_ended());
  EXPECT_TRUE(choice.Take(2, ReportsOf(0.75)));  // more than 0.125 above 0.5625
  EXPECT_FALSE(choice.Take(3, ReportsOf(0.75)));
  EXPECT_FALSE(choice.has_ended());
  EXPECT_TRUE(choice.Take(4, ReportsOf(0.875)));
  EXPECT_TRUE(choice.has_ended());
}

// A resumed run repeats the test of its first iteration.
TEST_F(ModelChoiceTest, TheTestThatComesAgainCountsOnce) {
  const auto resumed = [&](ModelChoice& choice, int iteration) {
    SolverProgress progress;
    choice.Describe(iteration, &progress);
    ModelChoice other(Parse("metric: 'accuracy' early_stopping: 2"), TestNets());
    other.Restore(progress);
    return other;
  };
  ModelChoice choice(Parse("metric: 'accuracy' early_stopping: 2"), TestNets());
  choice.Take(0, ReportsOf(0.5));
  ModelChoice best = resumed(choice, 0);
  EXPECT_FALSE(best.Take(0, ReportsOf(0.5)));
  EXPECT_FALSE(best.Take(1, ReportsOf(0.5)));
  EXPECT_FALSE(best.has_ended());
  choice.Take(1, ReportsOf(0.5));
  ModelChoice after = resumed(choice, 1);
  EXPECT_FALSE(after.Take(1, ReportsOf(0.5)));
  EXPECT_FALSE(after.has_ended());
  EXPECT_FALSE(after.Take(2, ReportsOf(0.5)));
  EXPECT_TRUE(after.has_ended());
}

TEST_F(ModelChoiceTest, RefusesWhatCannotBeCompared) {
  const auto error = [&](const std::string& options) {
    return ErrorText<InvalidArgument>([&] { Solver solver(Parse(options)); });
  };
  const std::string tested = "test_interval: 2 ";
  EXPECT_THAT(error(tested + "metric: 'acuracy'"),
              AllOf(HasSubstr("metric is 'acuracy', which no test net has; use one of their "
                              "outputs: accuracy, loss"),
                    HasSubstr("did you mean 'accuracy'?")));
  EXPECT_THAT(error("test_interval: 0 metric: 'accuracy'"),
              HasSubstr("the run has no tests; set test_interval"));
  EXPECT_THAT(error(tested + "early_stopping: 3"), HasSubstr("early_stopping is set, but metric"));
  EXPECT_THAT(error(tested + "metric: 'loss' early_stopping: -1"),
              HasSubstr("early_stopping is -1;"));
  EXPECT_THAT(error(tested + "metric: 'loss' early_stopping_delta: nan"),
              HasSubstr("early_stopping_delta is nan;"));
  EXPECT_THAT(error("keep_snapshots: -2"), HasSubstr("keep_snapshots is -2;"));
}

TEST_F(ModelChoiceTest, AShortTrialIsTestedAtItsEnd) {
  const SeenSnapshots seen =
      Solve(Parse("metric: 'accuracy' max_iter: 2 test_initialization: false"));
  EXPECT_EQ(seen.tested, 2);
  EXPECT_THAT(seen.best, ElementsAre(2));
}

TEST_F(ModelChoiceTest, SaysThatAMetricNeverComes) {
  ::testing::internal::CaptureStderr();
  Solve(Parse("metric: 'accuracy' test_interval: 5 max_iter: 2 test_initialization: false"));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("test_interval 5 is more than the 2 iterations of the run"));
}

// The pair belongs to the best test, even if later tests were worse.
TEST_F(ModelChoiceTest, WritesTheBestModel) {
  const SolverParameter param =
      Parse("max_iter: 24 test_interval: 3 metric: 'accuracy' snapshot_after_train: false");
  const SeenSnapshots seen = Solve(param);
  const auto most = std::max_element(seen.accuracies.begin(), seen.accuracies.end());
  const int best = 3 * static_cast<int>(most - seen.accuracies.begin());
  ASSERT_FALSE(seen.best.empty());
  EXPECT_EQ(seen.best.back(), best);
  EXPECT_TRUE(seen.usual.empty());
  Solver solver(Parse("test_interval: 100"));
  solver.Restore(folder_.path("run_best.solverstate"));
  EXPECT_EQ(solver.iter(), best);
  SeenSnapshots again;
  solver.AddObserver(&again);
  solver.TestAll();
  EXPECT_EQ(again.accuracies.at(0), *most);
}

TEST_F(ModelChoiceTest, WritesTheBestModelAsHdf5) {
  Solve(Parse("max_iter: 4 test_interval: 2 metric: 'loss' snapshot_format: HDF5"));
  EXPECT_TRUE(Exists("run_best.caffemodel.h5"));
  EXPECT_TRUE(Exists("run_best.solverstate.h5"));
}

// If a pair cannot be written, the best pair so far stays.
TEST_F(ModelChoiceTest, GoesOnWhereTheBestCannotBeWritten) {
  SolverParameter param = Parse("max_iter: 4 test_interval: 2 metric: 'loss'");
  std::filesystem::create_directories(folder_.path("run_best.caffemodel/in_the_way"));
  const SeenSnapshots seen = Solve(param);
  EXPECT_TRUE(seen.best.empty());
  EXPECT_EQ(seen.end.reason, TrainingEnd::kFinished);
}

TEST_F(ModelChoiceTest, EndsWhereNothingGetsBetter) {
  const std::string run = "max_iter: 90 test_interval: 3 metric: 'accuracy' ";
  const std::vector<float> accuracies =
      Solve(Parse(run + "snapshot_after_train: false")).accuracies;
  size_t best = 0, end = 0;
  for (size_t i = 0; i < accuracies.size() && end == 0; ++i) {
    if (accuracies[i] > accuracies[best]) best = i;
    if (i - best == 3) end = i;
  }
  ASSERT_GT(end, 0u) << "this training never stops getting better";
  const SeenSnapshots seen = Solve(Parse(run + "early_stopping: 3"));
  EXPECT_EQ(seen.end.reason, TrainingEnd::kEarlyStopping);
  EXPECT_EQ(seen.end.iteration, static_cast<int>(3 * end));
  EXPECT_THAT(seen.usual, ElementsAre(static_cast<int>(3 * end)));
  EXPECT_EQ(seen.best.back(), static_cast<int>(3 * best));
}

TEST_F(ModelChoiceTest, AllWorkersEndTogether) {
  SolverGroup group(Parse("max_iter: 90 test_interval: 3 metric: 'accuracy' early_stopping: 2"),
                    {.keep_all = false}, 3);
  group.Solve();
  EXPECT_LT(group.solver(0).iter(), 90);
  for (int worker = 1; worker < 3; ++worker)
    EXPECT_EQ(group.solver(worker).iter(), group.solver(0).iter());
  EXPECT_TRUE(Exists("run_best.solverstate"));
}

TEST_F(ModelChoiceTest, KeepsTheNewestSnapshots) {
  std::ofstream(folder_.path("run_iter_1.solverstate")) << "of somebody else";
  std::ofstream(folder_.path("run_iter_1.caffemodel")) << "of somebody else";
  Solve(Parse("max_iter: 12 snapshot: 2 keep_snapshots: 2 test_interval: 4 metric: 'loss'"));
  EXPECT_THAT(Kept(), ElementsAre(1, 10, 12));
  EXPECT_TRUE(Exists("run_best.caffemodel"));
  EXPECT_TRUE(Exists("run_best.solverstate"));
}

TEST_F(ModelChoiceTest, AResumedRunKeepsItsOwn) {
  // A run with another seed, but the same prefix.
  SolverParameter other = Parse("max_iter: 3 snapshot: 1");
  other.set_random_seed(9);
  Solve(other);
  Solve(Parse("max_iter: 8 snapshot: 4"));
  EXPECT_THAT(Kept(), ElementsAre(1, 2, 3, 4, 8));
  Solve(Parse("max_iter: 16 snapshot: 4 keep_snapshots: 2"),
        folder_.path("run_iter_8.solverstate"));
  EXPECT_THAT(Kept(), ElementsAre(1, 2, 3, 12, 16));
}

TEST_F(ModelChoiceTest, ResumesExactly) {
  for (const std::string format : {"BINARYPROTO", "HDF5"}) {
    for (const int workers : {1, 2}) {
      for (const std::string stopping : {"", " early_stopping: 3 early_stopping_delta: 0.02"}) {
        SCOPED_TRACE(format + " " + std::to_string(workers) + stopping);
        const testing::TemporaryFolder folder;
        SolverParameter param =
            Parse("max_iter: 40 snapshot: 6 test_interval: 3 metric: 'accuracy' snapshot_format: " +
                  format + stopping);
        param.set_snapshot_prefix(folder.path("run"));
        testing::ExpectExactResume(param, folder.path(""), 6, workers);
      }
    }
  }
}

}  // namespace
}  // namespace caffe
