#include "caffe/training_observer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <sstream>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/solver_group.hpp"
#include "caffe/solvers/training_progress.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_clock.hpp"

namespace caffe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Four rows per batch; the loss falls.
constexpr char kObservedNet[] = R"(
  name: "line"
  layer { name: "x" type: "DummyData" top: "x" top: "t"
    dummy_data_param { shape { dim: 4 dim: 1 } shape { dim: 4 dim: 1 }
      data_filler { type: "constant" value: 2 } data_filler { type: "constant" value: 3 } } }
  layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
    inner_product_param { num_output: 1 bias_term: false
      weight_filler { type: "constant" value: 0.5 } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
)";

// Records everything as text, and keeps the numbers.
class Recorder final : public TrainingObserver {
 public:
  void OnStart(const TrainingStart& report) override {
    Note("start", report.iteration) << " to " << report.stop;
    start = report;
  }
  void OnEnd(const TrainingEnd& report) override {
    Note("end", report.iteration) << " reason " << report.reason;
    end = report;
  }
  void OnDisplay(const DisplayReport& report) override {
    Note("display", report.iteration) << " of " << report.iterations;
    displays.push_back(report);
  }
  void OnIteration(const IterationReport& report) override {
    Note("iteration", report.iteration);
    iterations.push_back(report);
  }
  void OnTest(const TestReport& report) override {
    Note("test", report.iteration) << " net " << report.net;
    tests.push_back(report);
  }
  void OnSnapshot(const SnapshotReport& report) override { Note("snapshot", report.iteration); }

  // One line per event.
  std::vector<std::string> Events() const {
    std::vector<std::string> lines;
    std::istringstream text(events_.str());
    for (std::string line; std::getline(text, line);) {
      if (!line.empty()) lines.push_back(line);
    }
    return lines;
  }

  TrainingStart start;
  TrainingEnd end;
  std::vector<DisplayReport> displays;
  std::vector<IterationReport> iterations;
  std::vector<TestReport> tests;

 private:
  std::ostream& Note(const char* event, int iteration) {
    return events_ << "\n" << event << " " << iteration;
  }
  std::ostringstream events_;
};

class TrainingObserverTest : public ::testing::Test {
 protected:
  SolverParameter Parse(const std::string& options) {
    SolverParameter solver;
    ParseTextProto(
        "solver_mode: CPU random_seed: 7 base_lr: 0.01 lr_policy: 'fixed' snapshot_prefix: '" +
            folder_.path("run") + "' net_param { " + kObservedNet + " } " + options,
        "test", &solver);
    return solver;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(TrainingObserverTest, HearsOfEverythingInOrder) {
  Solver solver(Parse("max_iter: 3 display: 2 test_iter: 1 test_interval: 2 snapshot: 2"));
  Recorder recorder;
  solver.AddObserver(&recorder);
  solver.Solve();
  EXPECT_THAT(recorder.Events(),
              ElementsAre("start 0 to 3", "test 0 net 0", "display 0 of 0", "iteration 0",
                          "iteration 1", "snapshot 2", "test 2 net 0", "display 2 of 2",
                          "iteration 2", "snapshot 3", "end 3 reason 0"));
  EXPECT_EQ(recorder.start.seed, 7u);
  solver.RemoveObserver(&recorder);
  solver.Step(1);
  EXPECT_EQ(recorder.iterations.size(), 3u);
}

TEST_F(TrainingObserverTest, HearsTheNumbersOfTheLog) {
  Solver solver(
      Parse("max_iter: 2 display: 1 average_loss: 2 test_iter: 2 test_interval: 10 "
            "test_compute_loss: true snapshot_after_train: false"));
  Recorder recorder;
  solver.AddObserver(&recorder);
  ::testing::internal::CaptureStderr();
  solver.Solve();
  const std::string log = ::testing::internal::GetCapturedStderr();
  ASSERT_EQ(recorder.iterations.size(), 2u);
  const IterationReport& last = recorder.iterations.back();
  EXPECT_LT(last.loss, recorder.iterations.front().loss);
  EXPECT_FLOAT_EQ(last.smoothed_loss, (last.loss + recorder.iterations.front().loss) / 2);
  EXPECT_EQ(last.smoothed_loss, recorder.displays.back().smoothed_loss);
  EXPECT_TRUE(last.is_displayed);
  std::ostringstream expected;
  expected << " iters), loss = " << last.smoothed_loss << "\n";
  EXPECT_THAT(log, HasSubstr(expected.str()));
  EXPECT_THAT(log, HasSubstr("] Iteration 1, lr = 0.01\n"));
  EXPECT_EQ(last.learning_rate, 0.01f);
  const OutputReport& output = recorder.displays.front().outputs.at(0);
  EXPECT_EQ(output.name, "loss");
  EXPECT_EQ(output.loss_weight, 1);
  EXPECT_THAT(output.values, ElementsAre(recorder.iterations.front().loss));
  EXPECT_DOUBLE_EQ(recorder.tests.at(0).loss, 2);
  EXPECT_THAT(recorder.tests.at(0).outputs.at(0).values, ElementsAre(2));
}

TEST_F(TrainingObserverTest, CountsImagesOfAllPasses) {
  SolverGroup group(Parse("max_iter: 2 iter_size: 3 snapshot_after_train: false"), {}, 2);
  Recorder recorder, other;
  group.solver(0).AddObserver(&recorder);
  group.solver(1).AddObserver(&other);
  group.Solve();
  ASSERT_EQ(recorder.iterations.size(), 2u);
  const TrainingSpeed& speed = recorder.iterations.back().speed;
  EXPECT_EQ(speed.images, 4 * 3 * 2);
  EXPECT_GT(speed.seconds, 0);
  EXPECT_DOUBLE_EQ(*speed.ImagesPerSecond(), 24 / speed.seconds);
  // DummyData has no end and never makes the net wait.
  EXPECT_FALSE(speed.DataWaitShare());
  EXPECT_FALSE(recorder.iterations.back().epoch);
  EXPECT_TRUE(other.Events().empty());
}

// On a GPU the loss of an iteration arrives after the rate of the next one.
TEST_F(TrainingObserverTest, HearsOfIterationsWhoseLossIsLate) {
  Solver solver(Parse(""));
  TrainingProgress progress(solver.net(), 1);
  Recorder recorder;
  progress.Add(&recorder);
  progress.TakeRate(0, 0.5, std::nullopt, false);
  progress.TakeRate(1, 0.25, 8.0, false);
  EXPECT_TRUE(recorder.iterations.empty());
  progress.TakeLoss(0, 3, 4);
  ASSERT_EQ(recorder.iterations.size(), 1u);
  EXPECT_EQ(recorder.iterations[0].learning_rate, 0.5);
  EXPECT_FALSE(recorder.iterations[0].gradient_scale);
  progress.TakeLoss(1, 2, 3);
  ASSERT_EQ(recorder.iterations.size(), 2u);
  EXPECT_EQ(recorder.iterations[1].loss, 2);
  EXPECT_EQ(recorder.iterations[1].gradient_scale, 8.0);
}

TEST_F(TrainingObserverTest, DoesNotCountPauses) {
  Solver solver(Parse(""));
  testing::TestClock clock;
  TrainingProgress progress(solver.net(), 1, clock);
  Recorder recorder;
  progress.Add(&recorder);
  progress.Start({});
  {
    const TrainingProgress::Pause pause(progress);
    clock.Advance(std::chrono::seconds(2));
  }
  clock.Advance(std::chrono::seconds(3));
  progress.TakeLoss(0, 1, 1);
  progress.TakeRate(0, 1, std::nullopt, false);
  EXPECT_EQ(recorder.iterations.at(0).speed.seconds, 3);
}

TEST_F(TrainingObserverTest, HearsHowTrainingEnded) {
  Recorder recorder;
  Solver solver(Parse("max_iter: 9 snapshot_after_train: false"));
  solver.AddObserver(&recorder);
  solver.SetActionFunction([] { return SolverAction::STOP; });
  solver.Solve();
  EXPECT_EQ(recorder.end.reason, TrainingEnd::kStopped);
  EXPECT_EQ(recorder.end.iteration, 1);
  solver.SetActionFunction(nullptr);
  solver.net().layer_params("ip").at(0)->mutable_cpu_data()[0] = std::nanf("");
  EXPECT_THROW(solver.Step(1), Error);
  EXPECT_EQ(recorder.end.reason, TrainingEnd::kFailed);
  EXPECT_THAT(recorder.end.error, HasSubstr("is not a number"));
}

TEST_F(TrainingObserverTest, HearsWhatARunContinues) {
  const SolverParameter param = Parse("max_iter: 4");
  std::string state;
  {
    Solver solver(param);
    solver.Step(2);
    state = solver.Snapshot();
  }
  Solver solver(param);
  Recorder recorder;
  solver.AddObserver(&recorder);
  solver.Solve(state);
  EXPECT_EQ(recorder.Events().front(), "start 2 to 4");
  EXPECT_EQ(recorder.start.resumed_from, state);
  solver.Step(1);
  EXPECT_EQ(recorder.start.resumed_from, "");
}

}  // namespace
}  // namespace caffe
