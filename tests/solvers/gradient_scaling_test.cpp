#include "caffe/solvers/gradient_scaling.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/solver.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using testing::ErrorText;
using ::testing::HasSubstr;
using ::testing::Not;

// The rule of a net with these fields.
ops::GradientScaleRule RuleOf(const std::string& fields, bool adaptive_by_default = false) {
  NetParameter net;
  ParseTextProto(fields, "net", &net);
  return MakeGradientScaleRule(net, adaptive_by_default);
}

ops::GradientScaleRule Adaptive() {
  return RuleOf("global_grad_scale_adaptive: true");
}

TEST(GradientScaleRuleTest, TheDefaultIsForNetsThatSayNothing) {
  EXPECT_FALSE(RuleOf("").is_on());
  EXPECT_TRUE(RuleOf("", true).adaptive);
  EXPECT_FALSE(RuleOf("global_grad_scale: 8", true).adaptive);
  EXPECT_EQ(RuleOf("global_grad_scale: 8", true).factor, 8);
  EXPECT_FALSE(RuleOf("global_grad_scale_adaptive: false", true).is_on());
}

TEST(GradientScaleRuleTest, FollowsTheLargestGradient) {
  const ops::GradientScaleRule rule =
      RuleOf("global_grad_scale: 3 global_grad_scale_adaptive: true");
  EXPECT_TRUE(rule.is_on());
  ops::StepState state;
  EXPECT_EQ(state.scale, 1);
  rule.Advance(0.25, &state);
  EXPECT_EQ(state.scale, 32);  // 3 * 4 / 0.25, rounded down
  rule.Advance(0, &state);
  EXPECT_EQ(state.scale, 2);
}

TEST(GradientScaleRuleTest, AFieldKeepsTheFormulaOfNVCaffe) {
  const ops::GradientScaleRule rule = RuleOf(
      "global_grad_scale: 3 global_grad_scale_adaptive: true "
      "global_grad_scale_power_of_two: false");
  ops::StepState state;
  rule.Advance(0.25, &state);
  EXPECT_EQ(state.scale, 48);
  rule.Advance(0, &state);
  EXPECT_EQ(state.scale, 3);
  rule.Skip(&state);
  EXPECT_EQ(state.scale, 1.5);
}

TEST(GradientScaleRuleTest, IsAlwaysAPowerOfTwo) {
  const auto is_power = [](double scale) {
    int exponent = 0;
    return std::frexp(scale, &exponent) == 0.5;
  };
  for (const double factor : {1.0, 1000.0, 0.3, 1e-30, 1e30}) {
    const ops::GradientScaleRule rule{.factor = factor, .adaptive = true};
    ops::StepState state;
    for (int step = 0; step < 500; ++step) {
      step % 7 == 6 ? rule.Skip(&state) : rule.Advance(1e-4 * (1 + step % 13), &state);
      ASSERT_TRUE(is_power(state.scale)) << factor << " " << step << " " << state.scale;
    }
  }
  EXPECT_EQ(ops::GradientScaleRule{}.Rounded(0.75), 0.5);
  EXPECT_EQ(ops::GradientScaleRule{}.Rounded(64), 64);
}

// 65504 is the largest half; a scale of 32768 need not overflow.
TEST(GradientScaleRuleTest, AScaleThatNoHalfSurvivesIsNotTriedAgain) {
  ops::StepState state{.scale = 1 << 20};
  Adaptive().Skip(&state);
  EXPECT_EQ(state.scale, 32768);
}

TEST(GradientScaleRuleTest, AFixedFactorHoldsFromTheSecondStepOn) {
  const ops::GradientScaleRule rule = RuleOf("global_grad_scale: 1000");
  EXPECT_TRUE(rule.is_on());
  ops::StepState state;
  rule.Advance(0.25, &state);
  EXPECT_EQ(state.scale, 512);
  EXPECT_FALSE(RuleOf("").is_on());
}

TEST(GradientScaleRuleTest, SkippedStepsLowerItForAWhile) {
  const ops::GradientScaleRule rule = Adaptive();
  ops::StepState state;
  rule.Advance(4.0 / 1024, &state);
  EXPECT_EQ(state.scale, 1024);
  rule.Skip(&state);
  EXPECT_EQ(state.scale, 512);
  for (int step = 0; step < rule.kStepsToRaise - 1; ++step) rule.Advance(4.0 / 1024, &state);
  EXPECT_EQ(state.scale, 512);
  rule.Advance(4.0 / 1024, &state);
  EXPECT_EQ(state.scale, 1024);
  EXPECT_EQ(state.skipped_steps, 1);
}

TEST(GradientScaleRuleTest, GivesUpWhenNoScaleHelps) {
  const ops::GradientScaleRule rule = Adaptive();
  ops::StepState state;
  for (int step = 0; step < kMostSkippedSteps - 1; ++step) rule.Skip(&state);
  const auto nothing = [] { return std::string(); };
  EXPECT_NO_THROW(CheckSkippedSteps(state, nothing));
  rule.Skip(&state);
  EXPECT_THAT(ErrorText<Error>([&] { CheckSkippedSteps(state, nothing); }),
              HasSubstr(": lower base_lr, or look for infinities"));
  EXPECT_THAT(ErrorText<Error>([&] { CheckSkippedSteps(state, [] { return "layer 'a'"; }); }),
              EndsWith(": layer 'a'"));
  rule.Advance(1, &state);
  EXPECT_NO_THROW(CheckSkippedSteps(state, nothing));
  EXPECT_THROW(RuleOf("global_grad_scale: 0"), InvalidArgument);
}

// Contains BatchNorm, so that there are statistics to keep; its gradients have 16 bits.
constexpr char kNet[] = R"(
  name: "half" default_backward_type: FLOAT16
  layer { name: "x" type: "DummyData" top: "x" top: "t"
    dummy_data_param {
      shape { dim: 8 dim: 4 } shape { dim: 8 dim: 2 }
      data_filler { type: "gaussian" std: 1 } data_filler { type: "gaussian" std: 1 } } }
  layer { name: "bn" type: "BatchNorm" bottom: "x" top: "n" }
  layer { name: "ip" type: "InnerProduct" bottom: "n" top: "y"
    inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
)";

class GradientScalingTest : public ::testing::Test {
 protected:
  SolverParameter Parse(const std::string& options, const std::string& net_fields) {
    SolverParameter param;
    ParseTextProto("base_lr: 0.1 lr_policy: 'fixed' momentum: 0.9 display: 1 random_seed: 3 " +
                       options + " net_param { " + net_fields + kNet + " }",
                   "test", &param);
    param.set_snapshot_prefix(folder_.path("run"));
    return param;
  }

  // Weights, history and statistics, one after the other.
  static std::vector<float> Everything(Solver& solver) {
    std::vector<float> all;
    const auto append = [&](const Blob& blob) {
      all.insert(all.end(), blob.cpu_data(), blob.cpu_data() + blob.count());
    };
    for (const char* layer : {"ip", "bn"}) {
      for (const auto& blob : solver.net().layer_params(layer)) append(*blob);
    }
    for (const auto& blob : solver.history()) append(*blob);
    return all;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(GradientScalingTest, GivesTheStepsOfAnUnscaledNet) {
  // A power of two loses no digits, so the weights are equal or nearly equal to the last bit.
  Solver plain(Parse("clip_gradients: 1", "")),
      scaled(Parse("clip_gradients: 1", "global_grad_scale: 256 "));
  plain.Step(4);
  ::testing::internal::CaptureStderr();
  scaled.Step(4);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("Iteration 0, lr = 0.1, gs = 1\n"));
  EXPECT_THAT(log, HasSubstr("Iteration 1, lr = 0.1, gs = 256\n"));
  const std::vector<float> expected = Everything(plain), found = Everything(scaled);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-4);
}

// A net of floats, whose gradients could lose bits.
TEST_F(GradientScalingTest, APowerOfTwoLosesNoDigits) {
  const auto trained = [&](const std::string& fields) {
    SolverParameter param = Parse("", fields);
    param.mutable_net_param()->clear_default_backward_type();
    Solver solver(param);
    solver.Step(4);
    return Everything(solver);
  };
  EXPECT_EQ(trained("global_grad_scale: 1000 "), trained(""));
  EXPECT_NE(trained("global_grad_scale: 1000 global_grad_scale_power_of_two: false "), trained(""));
}

// Snapshots of earlier versions contain the scales of NVCaffe's formula.
TEST_F(GradientScalingTest, ScalesOfOldSnapshotsAreRoundedDown) {
  for (const std::string format : {"BINARYPROTO", "HDF5"}) {
    const std::string options = "snapshot_format: " + format, factor = "global_grad_scale: 1000 ";
    Solver old(Parse(options, factor + "global_grad_scale_power_of_two: false "));
    old.Step(2);
    const std::string state = old.Snapshot();
    const auto log_of = [&](const std::string& fields) {
      Solver solver(Parse(options, fields));
      solver.Restore(state);
      ::testing::internal::CaptureStderr();
      solver.Step(1);
      return ::testing::internal::GetCapturedStderr();
    };
    EXPECT_THAT(log_of(factor), HasSubstr("Iteration 2, lr = 0.1, gs = 512\n"));
    EXPECT_THAT(log_of(factor + "global_grad_scale_power_of_two: false "),
                HasSubstr("Iteration 2, lr = 0.1, gs = 1000\n"));
  }
}

TEST_F(GradientScalingTest, ASkippedStepLeavesNothingBehind) {
  for (const bool keep_all : {true, false}) {
    Solver solver(Parse("", "global_grad_scale: 1e6 global_grad_scale_adaptive: true "),
                  {.keep_all = keep_all});
    solver.Step(1);
    const std::vector<float> before = Everything(solver);
    ::testing::internal::CaptureStderr();
    solver.Step(1);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                HasSubstr("Iteration 1: gradients are not finite at gs = "));
    EXPECT_EQ(Everything(solver), before);
    ::testing::internal::CaptureStderr();
    solver.Step(3);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), Not(HasSubstr("not finite")));
    EXPECT_NE(Everything(solver), before);
  }
}

TEST_F(GradientScalingTest, ResumesExactly) {
  for (const std::string format : {"BINARYPROTO", "HDF5"}) {
    const std::string options = "larc: true larc_turbo: true snapshot_format: " + format;
    const SolverParameter param =
        Parse(options, "global_grad_scale: 1e6 global_grad_scale_adaptive: true ");
    Solver whole(param, {.keep_all = false});
    whole.Step(3);
    const std::string state = whole.Snapshot();
    whole.Step(3);
    Solver resumed(param, {.keep_all = false});
    resumed.Restore(state);
    resumed.Step(3);
    EXPECT_EQ(Everything(resumed), Everything(whole)) << format;
  }
}

// Otherwise a job that is restarted whenever it fails would never end.
TEST_F(GradientScalingTest, ARunThatSkipsIsNotGivenMoreStepsByASnapshot) {
  for (const std::string format : {"BINARYPROTO", "HDF5"}) {
    SolverParameter param = Parse("snapshot_format: " + format, "global_grad_scale: 2 ");
    // The target is infinite, so no scale helps.
    param.mutable_net_param()
        ->mutable_layer(0)
        ->mutable_dummy_data_param()
        ->mutable_data_filler(1)
        ->set_std(std::numeric_limits<float>::infinity());
    Solver whole(param, {.keep_all = false}), resumed(param, {.keep_all = false});
    ::testing::internal::CaptureStderr();
    whole.Step(kMostSkippedSteps - 2);
    resumed.Restore(whole.Snapshot());
    EXPECT_NO_THROW(resumed.Step(1)) << format;
    EXPECT_THROW(resumed.Step(1), Error) << format;
    ::testing::internal::GetCapturedStderr();
  }
}

TEST_F(GradientScalingTest, Fp16IsScaledUnlessTheNetSaysOtherwise) {
  const auto log_of = [&](const std::string& fields) {
    SolverParameter param = Parse("precision: FP16", fields);
    param.mutable_net_param()->clear_default_backward_type();
    ::testing::internal::CaptureStderr();
    Solver(param).Step(1);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(log_of(""), HasSubstr("gs = 1\n"));
  EXPECT_THAT(log_of("global_grad_scale: 1 "), Not(HasSubstr("gs = ")));
}

// A learning rate with which the first update makes the weights so large that all later passes
// overflow.
TEST_F(GradientScalingTest, GivingUpNamesTheLayer) {
  SolverParameter param;
  ParseTextProto(R"(
    base_lr: 1e8 lr_policy: "fixed" max_iter: 130 precision: FP16 random_seed: 1
    snapshot_after_train: false
    net_param {
      layer { name: "x" type: "DummyData" top: "x" top: "label" dummy_data_param {
        shape { dim: 4 dim: 8 } shape { dim: 4 }
        data_filler { type: "gaussian" std: 1 } data_filler { type: "constant" value: 1 } } }
      layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "ip1"
        inner_product_param { num_output: 20 weight_filler { type: "xavier" } } }
      layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
        inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
    })",
                 "solver", &param);
  Solver solver(param);
  EXPECT_THAT(ErrorText<Error>([&] { solver.Solve(); }),
              AllOf(HasSubstr("in 100 iterations in a row"),
                    HasSubstr("layer 'ip1' (InnerProduct) is the first")));
}

// The slope of a root at 0 is infinite, although all blobs are finite.
TEST_F(GradientScalingTest, GivingUpNamesTheLayerOfAnInfiniteGradient) {
  for (const char* types : {"", "precision: FP16"}) {
    for (const bool keep_all : {true, false}) {
      SolverParameter param;
      ParseTextProto(StrCat(types, R"(
        base_lr: 0.01 lr_policy: "fixed" max_iter: 400 snapshot_after_train: false random_seed: 1
        net_param { global_grad_scale: 2 global_grad_scale_adaptive: true
          layer { name: "x" type: "DummyData" top: "x" top: "t" dummy_data_param {
            shape { dim: 4 dim: 3 } shape { dim: 4 dim: 2 }
            data_filler { type: "constant" value: 1 } data_filler { type: "constant" value: 1 } } }
          layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
            inner_product_param { num_output: 2 weight_filler { type: "constant" } } }
          layer { name: "root" type: "Power" bottom: "y" top: "r" power_param { power: 0.5 } }
          layer { name: "loss" type: "EuclideanLoss" bottom: "r" bottom: "t" top: "loss" }
        })"),
                     "solver", &param);
      Solver solver(param, {.keep_all = keep_all});
      ::testing::internal::CaptureStderr();
      EXPECT_THAT(ErrorText<Error>([&] { solver.Solve(); }),
                  AllOf(HasSubstr("in 100 iterations in a row"),
                        HasSubstr("layer 'root' (Power) is the first whose gradient of blob 'y'")))
          << types << keep_all;
      ::testing::internal::GetCapturedStderr();
    }
  }
}

}  // namespace
}  // namespace caffe
