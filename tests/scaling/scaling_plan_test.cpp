#include "caffe/scaling_plan.hpp"

#include <gmock/gmock.h>

#include "caffe/net/training_net.hpp"
#include "caffe/tensor/synced_tensor.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

NetParameter NormalisedNet() {
  NetParameter param = testing::ParseNet(R"(
    name: "scaled"
    layer { name: "data" type: "DummyData" top: "x" top: "t"
            dummy_data_param { shape { dim: 4 dim: 3 dim: 5 dim: 5 } shape { dim: 4 } } }
    layer { name: "conv" type: "Convolution" bottom: "x" top: "c"
            convolution_param { num_output: 6 kernel_size: 3 } }
    layer { name: "norm" type: "BatchNorm" bottom: "c" top: "c" }
    layer { name: "a" type: "InnerProduct" bottom: "c" top: "a"
            inner_product_param { num_output: 7 } }
    layer { name: "b" type: "InnerProduct" bottom: "a" top: "b"
            inner_product_param { num_output: 5 } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "b" bottom: "t" top: "loss" })");
  param.mutable_state()->set_phase(TRAIN);
  return param;
}

// Each step takes a millisecond.
PlanTimes EvenTimes(const Net& net) {
  PlanTimes times{.batch = 4};
  for (const PlanStep& step : PlanSteps(net)) {
    times.step_ms.emplace_back(1);
    (step.is_backward ? times.backward_ms : times.forward_ms) += 1;
  }
  return times;
}

TEST(ScalingPlan, GradientsAreThoseThatTrainingReduces) {
  Net net(NormalisedNet(), {.keep_all = false});
  const StepTimeline timeline = TimelineOf(net, EvenTimes(net));
  const std::vector<SyncedTensor*> trained = TrainingNet(net).executor().Gradients();
  ASSERT_EQ(timeline.gradients.size(), trained.size());
  for (size_t i = 0; i < trained.size(); ++i) {
    EXPECT_EQ(timeline.gradients[i].count, trained[i]->desc().count()) << i;
    EXPECT_EQ(timeline.gradients[i].dtype, trained[i]->desc().dtype) << i;
    EXPECT_LT(timeline.gradients[i].step, timeline.backward_ms.size());
    if (i > 0) {
      EXPECT_GE(timeline.gradients[i].step, timeline.gradients[i - 1].step);
    }
  }
}

TEST(ScalingPlan, AStepHasAllTimesOfThePlan) {
  const Net net(NormalisedNet(), {.keep_all = false, .allocate = false});
  PlanTimes times = EvenTimes(net);
  times.weight_copies_ms = 0.25;
  times.update_ms = 0.5;
  const double pass = times.forward_ms + times.backward_ms;
  const StepTimeline timeline = TimelineOf(net, times);
  EXPECT_DOUBLE_EQ(timeline.milliseconds(), pass + 0.75);
  EXPECT_EQ(timeline.backward_ms.size(), static_cast<size_t>(times.backward_ms));
  EXPECT_EQ(timeline.images, 4);
  const StepTimeline of_three = TimelineOf(net, times, /*passes=*/3);
  EXPECT_DOUBLE_EQ(of_three.milliseconds(), 3 * pass + 0.75);
  EXPECT_EQ(of_three.backward_ms.size(), timeline.backward_ms.size()) << "the last pass reduces";
  EXPECT_EQ(of_three.images, 12);
}

TEST(ScalingPlan, StatisticsTravelAsOneLossAndDecisionsByThemselves) {
  const Net net(NormalisedNet(), {.keep_all = false, .allocate = false});
  const StepTimeline timeline = TimelineOf(net, EvenTimes(net));
  EXPECT_THAT(timeline.small_reductions, ::testing::ElementsAre(6 * 4 + 6 * 4 + 4, 8, 24));
}

TEST(ScalingPlan, GradientsTravelAsTheNetSays) {
  NetParameter param = NormalisedNet();
  param.set_reduce_type(BFLOAT16);
  const Net net(param, {.keep_all = false, .allocate = false});
  EXPECT_EQ(TimelineOf(net, EvenTimes(net)).wire, DType::kBFloat16);
}

TEST(ScalingPlan, TheTableHasARowForEachNumberOfRanks) {
  NetParameter param = NormalisedNet();
  param.set_reduce_buckets(2);
  const Net net(param, {.keep_all = false, .allocate = false});
  const Network network = NetworkOf(net, 2, {.per_byte = 1e-6, .latency = 1e-3});
  EXPECT_GE(network.processors, 1);
  EXPECT_EQ(network.latency_within, 1e-3);
  std::vector<ScalingRow> rows;
  for (const int ranks : {1, 2})
    rows.push_back(PredictRow(net, TimelineOf(net, EvenTimes(net)), network, ranks));
  EXPECT_DOUBLE_EQ(rows[0].as_set.efficiency, 1);
  EXPECT_EQ(rows[1].as_set.buckets, 2);
  EXPECT_LE(rows[1].best.step_ms, rows[1].as_set.step_ms);
  const std::string text = FormatScaling(net, rows);
  EXPECT_THAT(text, HasSubstr("Scaling of 'scaled'"));
  EXPECT_THAT(text, HasSubstr("\n       1 "));
  EXPECT_THAT(text, HasSubstr("\n       2 "));
  rows[1].as_set.efficiency = 1.064;
  EXPECT_THAT(FormatScaling(net, rows), Not(HasSubstr("above 1")));
  rows[1].timeline.exchanges = 4;
  EXPECT_THAT(FormatScaling(net, rows),
              HasSubstr("An efficiency above 1: each rank computes and updates only its part"));
}

}  // namespace
}  // namespace caffe
