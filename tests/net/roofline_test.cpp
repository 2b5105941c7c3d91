#include "caffe/net/roofline.hpp"

#include <gmock/gmock.h>

#include "caffe/error.hpp"
#include "caffe/plan_report.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

std::unique_ptr<Net> PlannedProducts(Precision precision) {
  NetParameter param = testing::ParseNet(R"(
    layer { name: "data" type: "Input" top: "x" input_param { shape { dim: 64 dim: 128 } } }
    layer { name: "y" type: "InnerProduct" bottom: "x" top: "y"
            inner_product_param { num_output: 32 bias_term: false } }
    layer { name: "loss" type: "Reduction" bottom: "y" top: "loss" loss_weight: 1 })");
  param.mutable_state()->set_phase(TRAIN);
  return std::make_unique<Net>(
      param, NetOptions{.keep_all = false, .precision = precision, .allocate = false});
}

// The time of forward's product: 2 * 64 * 128 * 32 operations.
double ForwardProductMs(const DevicePeaks& peaks, Precision precision = FP32) {
  const std::unique_ptr<Net> net = PlannedProducts(precision);
  const PlanTimes times = RooflineOfPlan(*net, std::nullopt, peaks);
  const std::vector<PlanStep> steps = PlanSteps(*net);
  EXPECT_EQ(times.step_ms.size(), steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].op.starts_with("Gemm")) return times.step_ms[i].value();
  }
  return 0;
}

constexpr double kFlops = 2.0 * 64 * 128 * 32, kBytes = 4.0 * (64 * 128 + 128 * 32 + 64 * 32);
constexpr double kEndless = 1e30;

TEST(Roofline, AStepTakesTheLongerOfArithmeticAndMemory) {
  const double launch = ForwardProductMs({kEndless, kEndless, kEndless, kEndless, kEndless, 0});
  EXPECT_GT(launch, 0) << "a kernel is launched";
  EXPECT_LT(launch, 0.1);
  // Half of the peak for products, four fifths of the peak for memory.
  const DevicePeaks slow_products = {kEndless, kEndless, kEndless, kFlops, kEndless, 0};
  EXPECT_NEAR(ForwardProductMs(slow_products), launch + 2000, 1e-6);
  const DevicePeaks slow_memory = {kBytes, kEndless, kEndless, kEndless, kEndless, 0};
  EXPECT_NEAR(ForwardProductMs(slow_memory), launch + 1250, 1e-6);
}

TEST(Roofline, ProductsHaveThePeakOfTheirType) {
  const DevicePeaks slow_halves = {kEndless, kEndless, kEndless, kEndless, kFlops, 0};
  EXPECT_LT(ForwardProductMs(slow_halves, FP32), 1);
  EXPECT_NEAR(ForwardProductMs(slow_halves, BF16), 2000, 1);
  const DevicePeaks slow_doubles = {kEndless, kEndless, kFlops, kEndless, kEndless, 0};
  EXPECT_NEAR(ForwardProductMs(slow_doubles, FP64), 2000, 1);
}

TEST(Roofline, AnUpdateMovesItsOperands) {
  TimedStep update;
  TimedStep::Operand weights;
  weights.shape = Shape{1000};
  update.inputs = {weights, weights};
  update.outputs = {weights};
  const std::unique_ptr<Net> net = PlannedProducts(FP32);
  const DevicePeaks peaks = {12000, kEndless, kEndless, kEndless, kEndless, 0};
  EXPECT_NEAR(RooflineOfPlan(*net, update, peaks).update_ms, 1250, 0.1);
  EXPECT_EQ(RooflineOfPlan(*net, std::nullopt, peaks).update_ms, 0);
}

TEST(Roofline, ADeviceThatIsThereIsMeasuredInstead) {
  try {
    RooflineOfPlan(*PlannedProducts(FP32));
    FAIL();
  } catch (const Unsupported& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("are not known"));
  }
}

}  // namespace
}  // namespace caffe
