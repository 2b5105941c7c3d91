// The layers that -parallel auto splits, and the costs that the scaling model gives for them.
#include "caffe/split_choice.hpp"

#include <gmock/gmock.h>

#include "caffe/plan_report.hpp"
#include "caffe/scaling_plan.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// 8 items. 'wide' has 4 million weights, 'narrow' few, 'image' many items for its weights.
std::unique_ptr<Net> NetToSplit(const std::string& options_of_wide = "",
                                const std::string& options_of_narrow = "") {
  NetParameter param = testing::ParseNet(StrCat(R"(
    layer { name: "data" type: "DummyData" top: "x" top: "t"
            dummy_data_param { shape { dim: 8 dim: 2000 } shape { dim: 8 } } }
    layer { name: "wide" type: "InnerProduct" bottom: "x" top: "a" )",
                                                options_of_wide, R"(
            inner_product_param { num_output: 2000 } }
    layer { name: "again" type: "InnerProduct" bottom: "a" top: "b"
            inner_product_param { num_output: 2000 bias_term: false } }
    layer { name: "narrow" type: "InnerProduct" bottom: "b" top: "c" )",
                                                options_of_narrow, R"(
            inner_product_param { num_output: 3 } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "c" bottom: "t" top: "loss" })"));
  param.mutable_state()->set_phase(TRAIN);
  return std::make_unique<Net>(param, NetOptions{.keep_all = false, .allocate = false});
}

TEST(SplitChoice, TakesLayersWithManyWeightsAndFewActivations) {
  const std::unique_ptr<Net> net = NetToSplit();
  const std::vector<SplitChoice> choices = ChooseSplits(*net, 2, /*by_cost=*/true);
  EXPECT_THAT(SplitLayersOf(choices), ElementsAre("wide", "again"));
  EXPECT_EQ(choices.at(0).gradient_bytes, 4.0 * (2000 * 2000 + 2000));
  // 8 x 2000 inputs, 8 x 1000 outputs and the same number of gradients of outputs; data has no
  // gradient.
  EXPECT_EQ(choices.at(0).exchanged_bytes, 4.0 * 8 * (2000 + 1000 + 1000));
  EXPECT_EQ(choices.at(0).exchanges, 3);
  EXPECT_EQ(choices.at(1).exchanged_bytes, 4.0 * 8 * (2000 + 1000 + 1000 + 2000));
  EXPECT_EQ(choices.at(1).exchanges, 4);
  EXPECT_LT(choices.at(1).exchange_seconds, choices.at(1).reduction_seconds);
  EXPECT_THAT(FormatSplits(choices, 2), HasSubstr("wide: gradients 16.01 MB"));
}

TEST(SplitChoice, CountsExchangesOfEachPass) {
  const std::vector<SplitChoice> choices = ChooseSplits(*NetToSplit(), 2, true, /*passes=*/3);
  EXPECT_EQ(choices.at(1).exchanged_bytes, 3 * 4.0 * 8 * 6000);
  EXPECT_EQ(choices.at(1).exchanges, 12);
}

TEST(SplitChoice, ObeysTheNet) {
  const auto chosen = [](const std::string& wide, const std::string& narrow, bool by_cost,
                         int ranks = 2) {
    return SplitLayersOf(ChooseSplits(*NetToSplit(wide, narrow), ranks, by_cost));
  };
  const std::string split = "parallel: SPLIT_OUTPUT";
  EXPECT_THAT(chosen("parallel: NONE", split, true), ElementsAre("again", "narrow"));
  EXPECT_THAT(chosen("", split, false), ElementsAre("narrow"));
  EXPECT_THAT(chosen("", "", false), IsEmpty());
  EXPECT_THAT(chosen("", "", true, 1), IsEmpty());
  EXPECT_THAT(chosen("param { lr_mult: 0 } param { lr_mult: 0 }", "", true), ElementsAre("again"))
      << "what does not learn is not reduced";
}

TEST(SplitChoice, PredictsAStepWithoutTheGradients) {
  const std::unique_ptr<Net> net = NetToSplit();
  PlanTimes times{.batch = 8};
  for (size_t i = 0; i < PlanSteps(*net).size(); ++i) times.step_ms.emplace_back(1);
  times.update_ms = 10;
  const StepTimeline alone = TimelineOf(*net, times);
  const Network network{.bandwidth = 1e9, .latency = 1e-3};
  const StepTimeline split = WithSplits(alone, ChooseSplits(*net, 2, true), 2);
  EXPECT_EQ(alone.gradients.size(), 5u);
  EXPECT_EQ(split.gradients.size(), 2u) << "those of 'narrow'";
  EXPECT_EQ(split.exchanged_bytes, 4.0 * 8 * (4000 + 6000));
  EXPECT_EQ(split.exchanges, 7);
  EXPECT_NEAR(split.update_of_others_ms, 5, 0.01);
  EXPECT_EQ(split.milliseconds(), alone.milliseconds());
  // Each exchange waits for two messages; 0.32 MB take 0.32 ms.
  EXPECT_NEAR(CostOfExchanges(network, 2, split.exchanged_bytes, split.exchanges).seconds,
              14e-3 + 0.32e-3, 1e-9);
  const double narrow = 4 * (6000 + 3);
  const double with = PredictStep(split, network, 2, 1).step_ms;
  EXPECT_GE(with, alone.milliseconds() - 5 + 14.32 + narrow / 1e6);
  EXPECT_LT(with, PredictStep(alone, network, 2, 1).step_ms);
}

}  // namespace
}  // namespace caffe
