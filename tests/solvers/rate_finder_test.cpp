#include "caffe/rate_finder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/training_rows.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using testing::ErrorText;
using ::testing::HasSubstr;
using ::testing::Not;

// Least squares in one weight, with gradient 4 * (w - 1): steps diverge beyond rate 0.5.
constexpr char kRateTestNet[] = R"(
  name: "line"
  layer { name: "x" type: "DummyData" top: "x" top: "t"
    dummy_data_param {
      shape { dim: 1 dim: 1 } shape { dim: 1 dim: 1 }
      data_filler { type: "constant" value: 2 } data_filler { type: "constant" value: 2 } } }
  layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
    inner_product_param { num_output: 1 bias_term: false weight_filler { type: "constant" value: 3 } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
)";

class RateFinderTest : public ::testing::Test {
 protected:
  SolverParameter Parse(const std::string& options = "") const {
    SolverParameter solver;
    ParseTextProto(options + " base_lr: 0.1 lr_policy: 'fixed' max_iter: 1000 snapshot: 1 " +
                       "solver_mode: CPU random_seed: 7 snapshot_prefix: '" + folder_.path("run") +
                       "' net_param { " + kRateTestNet + " }",
                   "test", &solver);
    return solver;
  }

  const testing::TemporaryFolder folder_;
};

TEST_F(RateFinderTest, RaisesTheRateExponentially) {
  const RateTest test =
      FindRate(Parse(), {.keep_all = false}, {.iterations = 11, .lowest = 1e-6, .highest = 1e-5});
  ASSERT_EQ(test.points.size(), 11u);
  for (int i = 0; i < 11; ++i)
    EXPECT_NEAR(test.points[i].rate / (1e-6 * std::pow(10, i / 10.0)), 1, 1e-5) << i;
  EXPECT_FALSE(test.has_diverged);
}

// The losses follow the formula: w - 1 shrinks by 1 - 4 * rate in each step.
TEST_F(RateFinderTest, TrainsAndSmoothsTheLoss) {
  const RateTest test =
      FindRate(Parse(), {.keep_all = false}, {.iterations = 40, .lowest = 1e-3, .highest = 10});
  double distance = 2, sum = 0;
  for (size_t i = 0; i < test.points.size(); ++i) {
    const RateTestPoint& point = test.points[i];
    const double loss = 2 * distance * distance;
    EXPECT_NEAR(point.loss / loss, 1, 1e-3) << i;
    sum = 0.9 * sum + 0.1 * point.loss;
    EXPECT_NEAR(point.smoothed_loss, sum / (1 - std::pow(0.9, i + 1.0)), 1e-9);
    distance *= 1 - 4 * point.rate;
    if (distance * distance < 1e-6) break;  // limit of float precision
  }
  EXPECT_TRUE(test.has_diverged);
  EXPECT_LT(test.points.size(), 40u);
  const double least = test.points[test.minimum].smoothed_loss;
  EXPECT_GT(test.points.back().smoothed_loss, 4 * least);
  ASSERT_TRUE(test.steepest.has_value());
  EXPECT_LT(*test.steepest, test.minimum);
  // Between a rate at which weights hardly move and the one from which steps diverge.
  EXPECT_GT(test.suggestion(), 0.005);
  EXPECT_LT(test.suggestion(), 0.5);
}

TEST_F(RateFinderTest, WritesNothing) {
  FindRate(Parse("test_iter: 1 test_interval: 1 metric: 'loss' keep_snapshots: 1"), {},
           {.iterations = 10, .highest = 1e-3});
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path("")));
}

TEST_F(RateFinderTest, EndsWhereTheLossIsNoNumber) {
  const RateTest test =
      FindRate(Parse(), {.keep_all = false},
               {.iterations = 60, .lowest = 1e-3, .highest = 1e30, .divergence = 1e300});
  EXPECT_TRUE(test.has_diverged);
  EXPECT_LT(test.points.size(), 60u);
}

TEST_F(RateFinderTest, FindsNothingWhereTheLossNeverFalls) {
  SolverParameter param = Parse();
  param.mutable_net_param()->mutable_layer(1)->add_param()->set_lr_mult(0);
  const RateTest test = FindRate(param, {.keep_all = false}, {.iterations = 12});
  EXPECT_FALSE(test.steepest.has_value());
  EXPECT_THAT(FormatRateTest(test), HasSubstr("The loss never falls"));
  EXPECT_THAT(FormatRateTestSvg(test), HasSubstr("</svg>"));
}

TEST_F(RateFinderTest, PrintsTableJsonAndPicture) {
  const RateTest test =
      FindRate(Parse(), {.keep_all = false}, {.iterations = 40, .lowest = 1e-3, .highest = 10});
  EXPECT_THAT(FormatRateTest(test), AllOf(HasSubstr("The loss diverges beyond rate"),
                                          HasSubstr("Suggestion: base_lr: ")));
  EXPECT_THAT(FormatRateTestJson(test),
              AllOf(HasSubstr("\"suggestion\""), HasSubstr("\"smoothed_loss\"")));
  EXPECT_THAT(FormatRateTestSvg(test),
              AllOf(HasSubstr("<polyline"), HasSubstr(">base_lr: "), HasSubstr("learning rate")));
}

// A loss that still falls at the highest rate has no minimum to warn of.
TEST_F(RateFinderTest, SaysWhereTheLossEnds) {
  RateTest test{.points = {{0, 0.1, 3, 3}, {1, 0.2, 2, 2}, {2, 0.4, 1, 1}}};
  test.minimum = 2;
  test.steepest = 1;
  EXPECT_THAT(FormatRateTest(test),
              AllOf(HasSubstr("still falls at 0.4, the highest rate: try higher ones"),
                    Not(HasSubstr("smallest")), HasSubstr("Suggestion: base_lr: 0.2")));
  test.minimum = 1;
  EXPECT_THAT(FormatRateTest(test),
              AllOf(HasSubstr("has not diverged up to rate 0.4"),
                    HasSubstr("smallest at 0.2, and rises beyond"), Not(HasSubstr("unstable"))));
}

TEST_F(RateFinderTest, RefusesTestsThatCannotBe) {
  const auto error = [&](const RateTestOptions& test) {
    return ErrorText<InvalidArgument>([&] { FindRate(Parse(), {}, test); });
  };
  EXPECT_THAT(error({.iterations = 9}), HasSubstr("has 9 iterations; give at least 10"));
  EXPECT_THAT(error({.lowest = 0}), HasSubstr("the lowest rate is 0"));
  EXPECT_THAT(error({.lowest = 1, .highest = 0.1}), HasSubstr("the highest rate is 0.1"));
  EXPECT_THAT(error({.smoothing = 1}), HasSubstr("the smoothing is 1"));
  EXPECT_THAT(error({.divergence = 1}), HasSubstr("more than 1"));
}

}  // namespace
}  // namespace caffe
