// Lengths in epochs, and tests that score each record once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/solver_group.hpp"
#include "caffe/training_observer.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/exact_resume.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/training_rows.hpp"

namespace caffe {
namespace {

using ::testing::ElementsAre;
using testing::ErrorText;
using ::testing::HasSubstr;

class EpochReports final : public TrainingObserver {
 public:
  void OnStart(const TrainingStart& start) override { stop = start.stop; }
  void OnTest(const TestReport& report) override { tests.push_back(report); }

  std::vector<int> iterations() const {
    std::vector<int> all;
    for (const TestReport& test : tests) all.push_back(test.iteration);
    return all;
  }
  // The value of the output in the last test.
  float Last(const std::string& output) const {
    for (const OutputReport& one : tests.back().outputs) {
      if (one.name == output) return one.values.at(0);
    }
    return -1;
  }

  int stop = 0;
  std::vector<TestReport> tests;
};

class EpochTest : public ::testing::Test {
 protected:
  SolverParameter Parse(const std::string& options, int test_batch = 5, int train_batch = 4) const {
    SolverParameter solver;
    ParseTextProto(options + " base_lr: 0.05 lr_policy: 'fixed' momentum: 0.9 random_seed: 3 " +
                       "solver_mode: CPU snapshot_after_train: false snapshot_prefix: '" +
                       folder_.path("run") + "' net_param { " +
                       testing::ClassifierOfRows(train_, test_, test_batch, train_batch) + " }",
                   "test", &solver);
    return solver;
  }

  EpochReports Solve(const SolverParameter& param, int workers = 1) const {
    SolverGroup group(param, {.keep_all = false}, workers);
    EpochReports reports;
    group.solver(0).AddObserver(&reports);
    group.Solve();
    EXPECT_EQ(group.solver(0).iter(), reports.stop);
    EXPECT_EQ(group.solver(0).max_iter(), reports.stop);
    return reports;
  }

  const testing::TemporaryFolder folder_;
  const std::string train_ = testing::WriteTrainingRows(folder_.path("train"), 30);
  const std::string test_ = testing::WriteTrainingRows(folder_.path("test"), 23, 100);
};

// 30 rows in batches of 4 are 7.5 iterations: epochs end within the 8th, with the 15th, ...
TEST_F(EpochTest, TrainsForEpochsAndTestsAfterEach) {
  const EpochReports reports = Solve(Parse("max_epoch: 3"));
  EXPECT_EQ(reports.stop, 23);
  EXPECT_THAT(reports.iterations(), ElementsAre(0, 8, 15, 23));
  EXPECT_THAT(Solve(Parse("max_epoch: 3 test_initialization: false")).iterations(),
              ElementsAre(8, 15, 23));
  EXPECT_THAT(Solve(Parse("max_epoch: 3 test_interval: 10")).iterations(), ElementsAre(0, 10, 20));
  EXPECT_TRUE(Solve(Parse("max_epoch: 3 test_interval: 0")).tests.empty());
}

TEST_F(EpochTest, RanksAndPassesShareAnEpoch) {
  EXPECT_EQ(Solve(Parse("max_epoch: 4 iter_size: 3")).stop, 10);
  EXPECT_EQ(Solve(Parse("max_epoch: 4"), 2).stop, 15);
  EXPECT_EQ(Solve(Parse("max_epoch: 4 iter_size: 2"), 3).stop, 5);
}

// The definition does not change; callers can ask for the number of iterations.
TEST_F(EpochTest, KeepsTheDefinition) {
  const Solver solver(Parse("max_epoch: 3"));
  EXPECT_FALSE(solver.param().has_max_iter());
  EXPECT_EQ(solver.max_iter(), 23);
}

// Schedules that end with the run know its length.
TEST_F(EpochTest, SchedulesEndWithTheEpochs) {
  SolverParameter param = Parse("max_epoch: 3 min_lr: 0.01");
  param.set_lr_policy("cosine");
  Solver solver(param);
  EXPECT_NEAR(solver.LearningRate(), 0.05, 1e-6);
  solver.Step(23);
  EXPECT_NEAR(solver.LearningRate(), 0.01, 1e-6);
}

TEST_F(EpochTest, RefusesLengthsThatCannotBe) {
  const auto error = [&](const SolverParameter& param) {
    return ErrorText<InvalidArgument>([&] { Solver solver(param); });
  };
  EXPECT_THAT(error(Parse("max_epoch: 3 max_iter: 100")),
              HasSubstr("max_epoch is 3 and max_iter 100; both say how long training is"));
  EXPECT_THAT(error(Parse("max_epoch: 0")), HasSubstr("max_epoch is 0;"));
  EXPECT_THAT(error(Parse("max_epoch: 2000000000")), HasSubstr("lower max_epoch"));
  SolverParameter unknown = Parse("max_epoch: 3");
  LayerParameter& data = *unknown.mutable_net_param()->mutable_layer(0);
  ParseTextProto(
      "name: 'made' type: 'DummyData' top: 'x' top: 'label' include { phase: TRAIN } "
      "dummy_data_param { shape { dim: 4 dim: 6 } shape { dim: 4 } }",
      "test", &data);
  EXPECT_THAT(error(unknown), HasSubstr("max_epoch needs data whose records are counted, or use "
                                        "max_iter: net 'rows' does not know how many records"));
  EXPECT_THAT(error(unknown), HasSubstr("'made' (DummyData)"));
}

// For any batch size and number of workers, each record counts once and equally.
TEST_F(EpochTest, ScoresEachRecordOnce) {
  const std::string run = "max_iter: 6 test_interval: 6 test_initialization: false";
  const EpochReports want = Solve(Parse(run + " test_iter: 23", 1));
  ASSERT_EQ(want.tests.size(), 1u);
  for (const int batch : {1, 4, 5, 23, 40}) {
    const EpochReports reports = Solve(Parse(run, batch));
    ASSERT_EQ(reports.tests.size(), 1u);
    EXPECT_FLOAT_EQ(reports.Last("accuracy"), want.Last("accuracy")) << batch;
    EXPECT_NEAR(reports.Last("loss"), want.Last("loss"), 1e-6) << batch;
    EXPECT_NEAR(reports.tests[0].loss, want.tests[0].loss, 1e-6) << batch;
  }
}

TEST_F(EpochTest, SeveralWorkersScoreEachRecordOnce) {
  for (const int workers : {2, 3}) {
    const auto run = [&](const std::string& iterations, int batch) {
      return Solve(Parse("max_iter: 4 test_interval: 2 " + iterations, batch), workers);
    };
    const EpochReports want = run("test_iter: 23", 1);
    for (const int batch : {4, 5, 12}) {
      const EpochReports reports = run("", batch);
      ASSERT_EQ(reports.iterations(), want.iterations());
      for (size_t i = 0; i < reports.tests.size(); ++i) {
        EXPECT_NEAR(reports.tests[i].loss / want.tests[i].loss, 1, 1e-6) << batch << " " << i;
        EXPECT_FLOAT_EQ(reports.tests[i].outputs[0].values[0], want.tests[i].outputs[0].values[0]);
      }
    }
  }
}

// Tests begin with the first record, even after the net was run or a test was interrupted.
TEST_F(EpochTest, EachTestBeginsWithTheFirstRecord) {
  const SolverParameter param = Parse("max_iter: 1 test_interval: 10");
  Solver solver(param);
  EpochReports reports;
  solver.AddObserver(&reports);
  solver.TestAll();
  solver.test_nets()[0]->Forward();
  solver.TestAll();
  int polls = 0;
  solver.SetActionFunction([&] { return ++polls == 3 ? SolverAction::STOP : SolverAction::NONE; });
  solver.TestAll();
  EXPECT_EQ(reports.tests.size(), 2u);
  solver.SetActionFunction(nullptr);
  solver.TestAll();
  ASSERT_EQ(reports.tests.size(), 3u);
  for (const TestReport& test : reports.tests) EXPECT_EQ(test.loss, reports.tests[0].loss);
}

TEST_F(EpochTest, SaysWhyTheLastBatchDoesNotFit) {
  SolverParameter param = Parse("max_iter: 1 test_interval: 1");
  ParseTextProto(
      "name: 'fixed' type: 'Reshape' bottom: 'y' top: 'z' include { phase: TEST } "
      "reshape_param { shape { dim: 5 dim: 3 } }",
      "test", param.mutable_net_param()->add_layer());
  Solver solver(param);
  EXPECT_THAT(
      ErrorText<InvalidArgument>([&] { solver.TestAll(); }),
      HasSubstr("the test's last batch, of 3 records (a net that needs 5 needs a batch_size that"));
}

// A net that does not report its number of records is not tested, as in Caffe, unless the solver
// names it as a test net.
TEST_F(EpochTest, LeavesOutTestsOfUnknownLength) {
  SolverParameter param = Parse("max_iter: 1 test_interval: 1");
  ParseTextProto(
      "name: 'made' type: 'DummyData' top: 'x' top: 'label' include { phase: TEST } "
      "dummy_data_param { shape { dim: 4 dim: 6 } shape { dim: 4 } }",
      "test", param.mutable_net_param()->mutable_layer(1));
  EXPECT_TRUE(Solve(param).tests.empty());
  *param.add_test_net_param() = param.net_param();
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { Solver solver(param); }),
              HasSubstr("test_iter is not given, and net 'rows' does not know how many records"));
}

TEST_F(EpochTest, ResumesExactly) {
  for (const std::string format : {"BINARYPROTO", "HDF5"}) {
    for (const int workers : {1, 2}) {
      SCOPED_TRACE(format + " " + std::to_string(workers));
      const testing::TemporaryFolder folder;
      SolverParameter param = Parse("max_epoch: 3 snapshot: 5 snapshot_format: " + format);
      param.set_snapshot_after_train(true);
      param.set_lr_policy("onecycle");
      param.set_momentum_policy("onecycle");
      param.set_snapshot_prefix(folder.path("run"));
      testing::ExpectExactResume(param, folder.path(""), 5, workers);
    }
  }
}

}  // namespace
}  // namespace caffe
