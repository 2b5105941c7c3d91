// Tests of a part of the data set: where those of a resumed run continue.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "caffe/io/text_format.hpp"
#include "caffe/solver_group.hpp"
#include "caffe/training_observer.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/training_rows.hpp"

namespace caffe {
namespace {

// Values of the tests by iteration; of a repeated test the last.
class TestValues final : public TrainingObserver {
 public:
  void OnTest(const TestReport& report) override {
    std::vector<float> values;
    for (const OutputReport& one : report.outputs)
      values.insert(values.end(), one.values.begin(), one.values.end());
    by_iteration[report.iteration] = values;
  }

  std::map<int, std::vector<float>> by_iteration;
};

class TestPositionsTest : public ::testing::Test {
 protected:
  // Each test scores 15 of 23 rows.
  SolverParameter Parse(const std::string& format) const {
    SolverParameter solver;
    ParseTextProto(
        "test_iter: 3 test_interval: 2 max_iter: 12 snapshot: 2 snapshot_format: " + format +
            " base_lr: 0.05 lr_policy: 'fixed' momentum: 0.9 random_seed: 3 "
            "solver_mode: CPU snapshot_prefix: '" +
            folder_.path("run") + "' net_param { " + testing::ClassifierOfRows(train_, test_, 5) +
            " }",
        "test", &solver);
    return solver;
  }

  static std::map<int, std::vector<float>> Solve(const SolverParameter& param, int workers,
                                                 const std::string& from = "") {
    SolverGroup group(param, {.keep_all = false}, workers);
    TestValues values;
    group.solver(0).AddObserver(&values);
    group.Solve(from);
    return values.by_iteration;
  }

  const testing::TemporaryFolder folder_;
  const std::string train_ = testing::WriteTrainingRows(folder_.path("train"), 30);
  const std::string test_ = testing::WriteTrainingRows(folder_.path("test"), 23, 100);
};

TEST_F(TestPositionsTest, ContinueAfterAResume) {
  const std::map<std::string, std::string> formats = {{"BINARYPROTO", ".solverstate"},
                                                      {"HDF5", ".solverstate.h5"}};
  for (const auto& [format, suffix] : formats) {
    for (const int workers : {1, 2, 4}) {
      SCOPED_TRACE(format + " " + std::to_string(workers));
      const SolverParameter param = Parse(format);
      const auto whole = Solve(param, workers);
      ASSERT_EQ(whole.size(), 7);
      for (const int middle : {2, 8, 12}) {
        SCOPED_TRACE(middle);
        const auto resumed =
            Solve(param, workers, folder_.path("run_iter_" + std::to_string(middle) + suffix));
        EXPECT_TRUE(resumed.contains(12));
        for (const auto& [iteration, values] : resumed)
          EXPECT_EQ(values, whole.at(iteration)) << iteration;
      }
    }
  }
}

// A test that is stopped is repeated from its first batch, in the same process and in another.
TEST_F(TestPositionsTest, RepeatAStoppedTest) {
  const SolverParameter param = Parse("BINARYPROTO");
  const auto whole = Solve(param, 1);
  Solver solver(param, {.keep_all = false});
  TestValues first, second;
  int asked = 0;
  solver.AddObserver(&first);
  // 4 iterations with 3 tests of 3 batches each: asked before each batch and after each iteration.
  solver.SetActionFunction([&] { return ++asked == 12 ? SolverAction::STOP : SolverAction::NONE; });
  solver.Solve();
  ASSERT_EQ(solver.iter(), 4);
  ASSERT_FALSE(first.by_iteration.contains(4));
  const auto resumed = Solve(param, 1, folder_.path("run_iter_4.solverstate"));
  for (const auto& [iteration, values] : resumed)
    EXPECT_EQ(values, whole.at(iteration)) << iteration;
  solver.AddObserver(&second);
  solver.Step(8);
  for (const auto& [iteration, values] : second.by_iteration)
    EXPECT_EQ(values, whole.at(iteration)) << iteration;
  EXPECT_EQ(second.by_iteration.size(), 4);
}

// Rank 1 has not tested any batch when the second test is stopped.
TEST_F(TestPositionsTest, RepeatAStoppedTestOfSeveralRanks) {
  SolverParameter param = Parse("BINARYPROTO");
  param.set_test_iter(0, 1);
  const auto whole = Solve(param, 2);
  SolverGroup group(param, {.keep_all = false}, 2);
  TestValues values;
  group.solver(0).AddObserver(&values);
  int asked = 0;
  group.solver(0).SetActionFunction(
      [&] { return ++asked == 4 ? SolverAction::STOP : SolverAction::NONE; });
  group.Solve();
  ASSERT_EQ(group.solver(0).iter(), 2);
  ASSERT_FALSE(values.by_iteration.contains(2));
  group.Solve();
  EXPECT_EQ(values.by_iteration, whole);
}

}  // namespace
}  // namespace caffe
