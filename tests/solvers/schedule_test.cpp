#include "caffe/solvers/schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"

namespace caffe {
namespace {

using ::testing::HasSubstr;

SolverParameter ParseSolver(const std::string& text) {
  SolverParameter param;
  ParseTextProto(text, "test", &param);
  return param;
}

// Rates of iterations 0 .. count - 1.
std::vector<double> Rates(const SolverParameter& param, int count) {
  CheckSchedule(param);
  int step = 0;
  PlateauState plateau;
  std::vector<double> rates;
  for (int iter = 0; iter < count; ++iter) {
    if (param.lr_policy() == "multistep") step = MultiStepAt(param, iter, step);
    if (param.lr_policy() == "plateau") step = PlateauAt(param, iter, step, 1.0, &plateau);
    rates.push_back(LearningRateAt(param, iter, step));
  }
  return rates;
}

void ExpectRates(const std::string& text, const std::vector<double>& want) {
  const std::vector<double> rates = Rates(ParseSolver(text), static_cast<int>(want.size()));
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(rates[i], want[i], 1e-6) << text << " at " << i;
}

TEST(ScheduleTest, Policies) {
  ExpectRates("base_lr: 0.5 lr_policy: 'fixed'", {0.5, 0.5});
  ExpectRates("base_lr: 1 lr_policy: 'step' gamma: 0.5 stepsize: 2", {1, 1, 0.5, 0.5, 0.25});
  ExpectRates("base_lr: 1 lr_policy: 'exp' gamma: 0.5", {1, 0.5, 0.25});
  ExpectRates("base_lr: 1 lr_policy: 'inv' gamma: 1 power: 2", {1, 0.25, 1.0 / 9});
  ExpectRates("base_lr: 1 lr_policy: 'poly' power: 2 max_iter: 4", {1, 0.5625, 0.25, 0.0625, 0, 0});
  ExpectRates("base_lr: 1 lr_policy: 'sigmoid' gamma: 1 stepsize: 1",
              {0.26894142, 0.5, 0.73105858});
}

TEST(ScheduleTest, MultistepTakesOneStepPerIteration) {
  ExpectRates("base_lr: 1 lr_policy: 'multistep' gamma: 0.5 stepvalue: 1 stepvalue: 1 stepvalue: 4",
              {1, 0.5, 0.25, 0.25, 0.125});
  ExpectRates("base_lr: 1 lr_policy: 'multistep' gamma: 0.5 stepvalue: 3 stepvalue: 1",
              {1, 1, 1, 0.5, 0.25, 0.25});
  ExpectRates(
      "base_lr: 1 lr_policy: 'multistep' gamma: 0.5 stepvalue: 1 stepvalue: 2 "
      "rampup_interval: 3 rampup_lr: 1",
      {1, 1, 1, 0.5, 0.25});
}

TEST(ScheduleTest, PlateauStepsWhenTheLossStopsFalling) {
  ExpectRates("base_lr: 1 lr_policy: 'plateau' gamma: 0.5 plateau_winsize: 2 plateau_winsize: 1",
              {1, 1, 0.5, 0.25, 0.25});
}

TEST(ScheduleTest, RampAndLowerBound) {
  ExpectRates("base_lr: 1 lr_policy: 'fixed' rampup_interval: 4 rampup_lr: 0.2",
              {0.2, 0.25, 0.4, 0.65, 1});
  ExpectRates("base_lr: 1 lr_policy: 'exp' gamma: 0.5 min_lr: 0.3", {1, 0.5, 0.3, 0.3});
  ExpectRates("base_lr: 1 lr_policy: 'poly' power: 1 max_iter: 2 min_lr: 0.2", {1, 0.6, 0.2, 0.2});
  ExpectRates("base_lr: -1 lr_policy: 'exp' gamma: 0.5", {-1, -0.5});
}

TEST(ScheduleTest, MomentumAndWeightDecay) {
  SolverParameter param = ParseSolver("momentum: 0.5 weight_decay: 0.4 max_iter: 4");
  EXPECT_NEAR(MomentumAt(param, 2, 0.1), 0.5, 1e-6);
  EXPECT_NEAR(WeightDecayAt(param, 2), 0.4, 1e-6);
  param.set_momentum_policy("poly");
  param.set_weight_decay_policy("poly");
  EXPECT_NEAR(MomentumAt(param, 2, 0.1), 0.745, 1e-6);
  EXPECT_NEAR(WeightDecayAt(param, 1), 0.3, 1e-6);
  param.set_momentum_policy("opt");
  EXPECT_NEAR(MomentumAt(param, 2, 0.04), 0.81, 1e-6);
  param.set_max_momentum(0.6f);
  EXPECT_NEAR(MomentumAt(param, 2, 0.04), 0.6, 1e-6);
}

TEST(ScheduleTest, RefusesWhatItCannotCompute) {
  const auto error = [](const std::string& text) -> std::string {
    try {
      CheckSchedule(ParseSolver(text));
    } catch (const InvalidArgument& what) {
      return what.what();
    }
    return "no error";
  };
  EXPECT_THAT(error("base_lr: 1 lr_policy: 'multstep'"), HasSubstr("did you mean 'multistep'?"));
  EXPECT_THAT(error("base_lr: 1"), HasSubstr("lr_policy is not set; use one of fixed, step"));
  EXPECT_THAT(error("lr_policy: 'fixed'"), HasSubstr("base_lr is not set"));
  EXPECT_THAT(error("base_lr: 1 lr_policy: 'step'"), HasSubstr("stepsize is not set"));
  EXPECT_THAT(error("base_lr: 1 lr_policy: 'step' stepsize: 0"), HasSubstr("stepsize is 0;"));
  EXPECT_THAT(error("base_lr: 1 lr_policy: 'poly'"), HasSubstr("max_iter > 0"));
  EXPECT_THAT(error("base_lr: 1 lr_policy: 'plateau'"), HasSubstr("plateau_winsize"));
}

}  // namespace
}  // namespace caffe
