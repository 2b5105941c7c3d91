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

// The rates of iterations 0 .. count - 1.
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

// Results of the formulas in schedule.hpp, which are PyTorch's: CosineAnnealingLR(T_max=8,
// eta_min=0.1), CosineAnnealingWarmRestarts(T_0=2, T_mult=2), OneCycleLR(total_steps=10,
// pct_start=0.3) and OneCycleLR(total_steps=8, pct_start=0.5, div_factor=4, final_div_factor=10).
TEST(ScheduleTest, CosineFallsAlongHalfACosine) {
  ExpectRates("base_lr: 1 lr_policy: 'cosine' min_lr: 0.1 max_iter: 8",
              {1, 0.96574579, 0.868198052, 0.722207545, 0.55, 0.377792455, 0.231801948, 0.13425421,
               0.1, 0.1});
}

TEST(ScheduleTest, RestartsBeginCyclesAgain) {
  ExpectRates("base_lr: 1 lr_policy: 'restarts' cycle: 2 cycle_mult: 2",
              {1, 0.5, 1, 0.853553391, 0.5, 0.146446609, 1, 0.961939766});
  ExpectRates("base_lr: 1 lr_policy: 'restarts' cycle: 3 min_lr: 0.2",
              {1, 0.8, 0.4, 1, 0.8, 0.4, 1});
  // Cycles of 2, 3 and 4.5 iterations.
  ExpectRates("base_lr: 1 lr_policy: 'restarts' cycle: 2 cycle_mult: 1.5",
              {1, 0.5, 1, 0.75, 0.25, 1, 0.883022222, 0.586824089, 0.25, 0.03015369, 0.986522435});
}

TEST(ScheduleTest, OneCycleRisesAndFalls) {
  ExpectRates("base_lr: 1 lr_policy: 'onecycle' max_iter: 10",
              {0.04, 0.52, 1, 0.950484632, 0.811745654, 0.611262022, 0.388741978, 0.188258346,
               0.049519368, 4e-06, 4e-06});
  ExpectRates("base_lr: 1 lr_policy: 'onecycle' max_iter: 8 rise: 0.5 start_div: 4 final_div: 10",
              {0.25, 0.4375, 0.8125, 1, 0.857214556, 0.5125, 0.167785444, 0.025, 0.025});
}

TEST(ScheduleTest, OneCycleOfAFewStepsHasNoRise) {
  ExpectRates("base_lr: 1 lr_policy: 'onecycle' max_iter: 1", {1});
  ExpectRates("base_lr: 1 lr_policy: 'onecycle' max_iter: 2", {1, 4e-06});
  ExpectRates("base_lr: 1 lr_policy: 'onecycle' max_iter: 4", {0.04, 0.811745654, 0.283060998, 4e-06});
}

TEST(ScheduleTest, OneCycleMovesMomentumTheOtherWay) {
  const SolverParameter param = ParseSolver(
      "base_lr: 1 lr_policy: 'onecycle' momentum_policy: 'onecycle' momentum: 0.85 "
      "max_momentum: 0.95 max_iter: 10");
  CheckSchedule(param);
  const std::vector<double> want = {0.95,        0.9,         0.85,       0.854951557, 0.86882551,
                                    0.888873953, 0.911126047, 0.93117449, 0.945048443, 0.95};
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(MomentumAt(param, static_cast<int>(i), 0.1), want[i], 1e-6) << i;
}

TEST(ScheduleTest, RampsAreQuadraticLinearOrACosine) {
  const std::string ramp = "base_lr: 1 lr_policy: 'fixed' rampup_interval: 4 rampup_lr: 0.2 ";
  ExpectRates(ramp + "rampup_policy: 'quadratic'", {0.2, 0.25, 0.4, 0.65, 1});
  ExpectRates(ramp + "rampup_policy: 'linear'", {0.2, 0.4, 0.6, 0.8, 1});
  ExpectRates(ramp + "rampup_policy: 'cosine'", {0.2, 0.317157288, 0.6, 0.882842712, 1});
}

// So the ramp ends where the fall begins.
TEST(ScheduleTest, CosineAndRestartsCountFromTheEndOfTheRamp) {
  const std::string ramp = "base_lr: 1 rampup_interval: 2 rampup_policy: 'linear' ";
  ExpectRates(ramp + "lr_policy: 'cosine' max_iter: 6",
              {0, 0.5, 1, 0.853553391, 0.5, 0.146446609, 0});
  ExpectRates(ramp + "lr_policy: 'restarts' cycle: 2", {0, 0.5, 1, 0.5, 1, 0.5});
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
  const std::string rate = "base_lr: 1 ";
  EXPECT_THAT(error(rate + "lr_policy: 'cosine'"), HasSubstr("lr_policy 'cosine'"));
  EXPECT_THAT(error(rate + "lr_policy: 'cosine' max_iter: 5 rampup_interval: 5"),
              HasSubstr("max_iter is 5, but rampup_interval is 5"));
  EXPECT_THAT(error(rate + "lr_policy: 'cosine' max_iter: 5 min_lr: 2"),
              HasSubstr("base_lr 1 is below min_lr 2"));
  EXPECT_THAT(error(rate + "lr_policy: 'restarts'"), HasSubstr("cycle is not set"));
  EXPECT_THAT(error(rate + "lr_policy: 'restarts' cycle: 0"), HasSubstr("cycle is 0;"));
  EXPECT_THAT(error(rate + "lr_policy: 'restarts' cycle: 4 cycle_mult: 0.5"),
              HasSubstr("cycle_mult is 0.5;"));
  const std::string one_cycle = rate + "lr_policy: 'onecycle' max_iter: 10 ";
  EXPECT_EQ(error(one_cycle), "no error");
  EXPECT_THAT(error(rate + "lr_policy: 'onecycle'"), HasSubstr("max_iter is 0"));
  EXPECT_THAT(error(one_cycle + "rise: 0"), HasSubstr("rise is 0;"));
  EXPECT_THAT(error(one_cycle + "rise: 1"), HasSubstr("rise is 1;"));
  EXPECT_THAT(error(one_cycle + "start_div: 0"), HasSubstr("start_div is 0;"));
  EXPECT_THAT(error(one_cycle + "final_div: nan"), HasSubstr("final_div is nan;"));
  EXPECT_THAT(error(one_cycle + "rampup_interval: 3"), HasSubstr("rampup_interval is 3"));
  EXPECT_THAT(error(rate + "lr_policy: 'fixed' momentum_policy: 'onecycle' max_iter: 10 "
                           "momentum: 0.9 max_momentum: 0.5"),
              HasSubstr("max_momentum is 0.5, below momentum 0.9"));
  EXPECT_THAT(error(rate + "lr_policy: 'fixed' rampup_policy: 'lineal'"),
              HasSubstr("did you mean 'linear'?"));
}

// Fields that depend on the length are checked once the data's length is known.
TEST(ScheduleTest, LeavesTheLengthOfEpochsToTheData) {
  SolverParameter param = ParseSolver("base_lr: 1 lr_policy: 'cosine' max_epoch: 2");
  EXPECT_NO_THROW(CheckSchedule(param));
  EXPECT_THROW(CheckScheduleLength(param), InvalidArgument);
  param.set_max_iter(10);
  EXPECT_NO_THROW(CheckScheduleLength(param));
}

}  // namespace
}  // namespace caffe
