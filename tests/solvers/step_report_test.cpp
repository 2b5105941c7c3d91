// Information about updates in the reports of displayed iterations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "caffe/io/text_format.hpp"
#include "caffe/solver_group.hpp"
#include "caffe/training_observer.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/training_rows.hpp"

namespace caffe {
namespace {

class StepRecorder final : public TrainingObserver {
 public:
  void OnIteration(const IterationReport& report) override { reports.push_back(report); }
  std::vector<IterationReport> reports;
};

class StepReportTest : public ::testing::Test {
 protected:
  SolverParameter Parse(const std::string& options, const std::string& net_options = "") const {
    SolverParameter solver;
    ParseTextProto(options + " base_lr: 0.05 lr_policy: 'fixed' momentum: 0.9 random_seed: 3 " +
                       "solver_mode: CPU snapshot_after_train: false net_param { " + net_options +
                       testing::ClassifierOfRows(train_, train_, 5) + " }",
                   "test", &solver);
    return solver;
  }
  // The reports of this many iterations; `norms` gets the gradient norms, if given.
  std::vector<IterationReport> Train(const SolverParameter& param, int iterations,
                                     std::vector<double>* norms = nullptr) const {
    Solver solver(param);
    StepRecorder recorder;
    solver.AddObserver(&recorder);
    if (norms != nullptr) {
      solver.AddCallbacks({.on_gradients_ready = [&] {
        double squares = 0;
        for (const Net::LearnableParam& one : solver.net().learnable_params()) {
          if (one.lr_mult != 0) squares += one.blob->sumsq_diff();
        }
        norms->push_back(std::sqrt(squares));
      }});
    }
    solver.Step(iterations);
    return recorder.reports;
  }

  const testing::TemporaryFolder data_;
  const std::string train_ = testing::WriteTrainingRows(data_.path("train"), 30);
};

// The norm is that of the sum over iter_size, before clipping.
TEST_F(StepReportTest, TellsTheNormOfGradients) {
  for (const std::string options :
       {"", "clip_gradients: 0.1", "iter_size: 3", "regularization_type: 'L1' weight_decay: 0.1"}) {
    std::vector<double> norms;
    const auto reports = Train(Parse(options + " display: 2"), 5, &norms);
    ASSERT_EQ(reports.size(), 5u);
    for (size_t i = 0; i < 5; ++i) {
      ASSERT_EQ(reports[i].step.gradient_norm.has_value(), i % 2 == 0) << i;
      const double norm = reports[i].step.gradient_norm.value_or(norms[i]);
      EXPECT_NEAR(norm / norms[i], 1, 1e-6) << options;
      EXPECT_FALSE(reports[i].step.skipped_steps.has_value());
      EXPECT_FALSE(reports[i].step.larc.has_value());
    }
  }
}

TEST_F(StepReportTest, TellsUnscaledNorms) {
  std::vector<double> norms, scaled;
  const auto plain = Train(Parse("display: 1"), 2, &norms);
  const auto reports = Train(Parse("display: 1", "global_grad_scale: 1024 "), 2, &scaled);
  EXPECT_NEAR(*reports[1].step.gradient_norm, *plain[1].step.gradient_norm, 1e-4);
  EXPECT_FALSE(reports[1].step.skipped_steps.has_value()) << "a fixed scale skips nothing";
}

TEST_F(StepReportTest, CountsSkippedStepsOfAdaptiveScaling) {
  const auto reports = Train(Parse("display: 1", "global_grad_scale_adaptive: true "), 3);
  for (const IterationReport& report : reports) EXPECT_EQ(report.step.skipped_steps, 0);
  // Scaled gradients of many passes add up to more than a float can hold.
  const auto skipping = Train(Parse("display: 1 iter_size: 64",
                                    "global_grad_scale: 3e38 global_grad_scale_adaptive: true "),
                              4);
  EXPECT_EQ(skipping.front().step.skipped_steps, 0);
  EXPECT_GT(skipping.back().step.skipped_steps, 0);
}

// scale: the local rate is the schedule's times 0.1 * eta * |w| / |g|, with momentum 0.9.
TEST_F(StepReportTest, TellsHowLarcSpreadsRates) {
  const SolverParameter param = Parse("display: 2 larc: true larc_eta: 0.01");
  Solver solver(param);
  StepRecorder recorder;
  solver.AddObserver(&recorder);
  std::vector<double> ratios;
  solver.AddCallbacks({.on_gradients_ready = [&] {
    if (solver.iter() != 2) return;
    for (const Net::LearnableParam& one : solver.net().learnable_params()) {
      if (one.lr_mult == 0) continue;
      const double w = std::sqrt(one.blob->sumsq_data()), g = std::sqrt(one.blob->sumsq_diff());
      ratios.push_back(w > 0 && g > 0 ? (1 - 0.9f) * 0.01f * w / g : 1);
    }
  }});
  solver.Step(3);
  std::ranges::sort(ratios);
  ASSERT_EQ(ratios.size(), 4u);
  ASSERT_EQ(recorder.reports.size(), 3u);
  EXPECT_FALSE(recorder.reports[1].step.larc.has_value());
  const std::optional<LarcReport>& larc = recorder.reports[2].step.larc;
  ASSERT_TRUE(larc.has_value());
  EXPECT_NEAR(larc->smallest, ratios[0], 1e-6);
  EXPECT_NEAR(larc->median, (ratios[1] + ratios[2]) / 2, 1e-6);
  EXPECT_NEAR(larc->largest, ratios[3], 1e-6);
}

// Nothing is measured if nothing is displayed, and measuring changes no step.
TEST_F(StepReportTest, MeasuringChangesNoStep) {
  const auto losses = [&](const std::string& options, int workers) {
    SolverGroup group(Parse(options + " clip_gradients: 1 larc: true larc_eta: 0.01"),
                      {.keep_all = false}, workers);
    StepRecorder recorder;
    group.solver(0).AddObserver(&recorder);
    group.Step(6);
    std::vector<float> all;
    for (const IterationReport& report : recorder.reports) {
      all.push_back(report.loss);
      EXPECT_EQ(report.step.gradient_norm.has_value(), report.is_displayed);
      EXPECT_EQ(report.step.larc.has_value(), report.is_displayed);
    }
    return all;
  };
  for (const int workers : {1, 2}) EXPECT_EQ(losses("display: 2", workers), losses("", workers));
}

}  // namespace
}  // namespace caffe
