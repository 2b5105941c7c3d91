#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "caffe/scaling.hpp"

namespace caffe {
namespace {

constexpr double kMegabyte = 1e6;

// Two GPUs of one machine: a reduction takes bytes / bandwidth, and `start` before it begins.
Network TwoGpus(double bandwidth, double start = 0) {
  return {.algorithm = ReductionAlgorithm::kRingOrTree,
          .ranks_per_machine = 2,
          .bandwidth_within = bandwidth,
          .start = start};
}

// 5 ms forward, three steps of backward of 10 ms, 1 ms update; 4 MB final after each of `steps`.
StepTimeline Timeline(const std::vector<size_t>& steps) {
  StepTimeline timeline{.forward_ms = 5, .backward_ms = {10, 10, 10}, .update_ms = 1, .images = 8};
  for (const size_t step : steps) timeline.gradients.push_back({step, 1'000'000, DType::kFloat});
  return timeline;
}

TEST(ScalingModel, OneRankCommunicatesNothing) {
  StepTimeline timeline = Timeline({0, 1, 2});
  timeline.small_reductions = {8, 24};
  const ScalingPrediction alone = PredictStep(timeline, TwoGpus(1, 1), 1, 6);
  EXPECT_DOUBLE_EQ(alone.step_ms, 36);
  EXPECT_EQ(alone.communication_ms, 0);
  EXPECT_EQ(alone.exposed_ms, 0);
  EXPECT_EQ(alone.efficiency, 1);
  EXPECT_DOUBLE_EQ(alone.images_per_second, 8 / 0.036);
}

TEST(ScalingModel, WhatIsFinalLastIsExposed) {
  const ScalingPrediction two = PredictStep(Timeline({2}), TwoGpus(400 * kMegabyte), 2, 6);
  EXPECT_NEAR(two.step_ms, 36 + 10, 1e-9);
  EXPECT_NEAR(two.communication_ms, 10, 1e-9);
  EXPECT_NEAR(two.exposed_ms, 10, 1e-9);
  EXPECT_NEAR(two.efficiency, 36.0 / 46, 1e-9);
  EXPECT_NEAR(two.images_per_second, 2 * 8 / 0.046, 1e-6);
}

TEST(ScalingModel, ABucketHidesBehindLaterSteps) {
  // From 10 to 20 ms of backward, and from 30 to 40; as one bucket from 30 to 50.
  const StepTimeline timeline = Timeline({0, 2});
  const ScalingPrediction two = PredictStep(timeline, TwoGpus(400 * kMegabyte), 2, 2);
  EXPECT_NEAR(two.step_ms, 46, 1e-9);
  EXPECT_NEAR(two.communication_ms, 20, 1e-9);
  EXPECT_NEAR(two.exposed_ms, 10, 1e-9);
  EXPECT_NEAR(PredictStep(timeline, TwoGpus(400 * kMegabyte), 2, 1).step_ms, 56, 1e-9);
}

TEST(ScalingModel, ABucketWaitsForTheOneBefore) {
  // 15 ms each: from 10 to 25 ms of backward, to 40 and to 55.
  const ScalingPrediction two =
      PredictStep(Timeline({0, 1, 2}), TwoGpus(4 * kMegabyte / 0.015), 2, 3);
  EXPECT_NEAR(two.step_ms, 5 + 55 + 1, 1e-9);
  EXPECT_NEAR(two.exposed_ms, 25, 1e-9);
}

TEST(ScalingModel, AllThatIsHiddenIsFree) {
  const ScalingPrediction two = PredictStep(Timeline({0}), TwoGpus(400 * kMegabyte), 2, 1);
  EXPECT_NEAR(two.step_ms, 36, 1e-9);
  EXPECT_NEAR(two.communication_ms, 10, 1e-9);
  EXPECT_NEAR(two.exposed_ms, 0, 1e-9);
}

TEST(ScalingModel, SmallReductionsFollowTheGradients) {
  StepTimeline timeline = Timeline({2});
  timeline.small_reductions = {400, 400};
  const ScalingPrediction two =
      PredictStep(timeline, TwoGpus(400 * kMegabyte, /*start=*/0.002), 2, 1);
  EXPECT_NEAR(two.step_ms, 36 + 12 + 2 * (2 + 0.001), 1e-9);
}

// Ranks on processors; messages take 1 / bandwidth per byte and nothing else.
TEST(ScalingModel, ProcessorsUpdateABucketWhileTheNextIsReduced) {
  Network network = TwoGpus(400 * kMegabyte);
  network.algorithm = ReductionAlgorithm::kMessages;
  StepTimeline timeline = Timeline({1, 2, 2});
  timeline.update_ms = 12;
  // 10 ms each: reduced 30, 40 and 50 ms after the start of backward, updated in 4 ms each.
  EXPECT_NEAR(PredictStep(timeline, network, 2, 3).step_ms, 5 + 54, 1e-9);
  EXPECT_NEAR(PredictStep(timeline, network, 2, 1).step_ms, 5 + 30 + 30 + 12, 1e-9);
  network.algorithm = ReductionAlgorithm::kRingOrTree;
  EXPECT_NEAR(PredictStep(timeline, network, 2, 3).step_ms, 5 + 50 + 12, 1e-9);
}

TEST(ScalingModel, GradientsTravelInFewerBits) {
  StepTimeline timeline = Timeline({2});
  timeline.wire = DType::kBFloat16;
  EXPECT_NEAR(PredictStep(timeline, TwoGpus(400 * kMegabyte), 2, 1).step_ms, 36 + 5, 1e-9);
}

TEST(ScalingModel, TheBestBucketsWeighLatencyAgainstOverlap) {
  // A start of 4 ms: one bucket ends at 30 + 34 ms of backward, two at 30 + 14 + ...
  const StepTimeline timeline = Timeline({0, 1, 2});
  const ScalingPrediction free = BestBuckets(timeline, TwoGpus(400 * kMegabyte), 2);
  EXPECT_EQ(free.buckets, 3) << "one for each gradient; more change nothing";
  EXPECT_NEAR(free.step_ms, 46, 1e-9);
  const ScalingPrediction costly = BestBuckets(timeline, TwoGpus(400 * kMegabyte, 0.1), 2);
  EXPECT_EQ(costly.buckets, 1) << "100 ms for each reduction";
  EXPECT_NEAR(costly.step_ms, 36 + 130, 1e-9);
}

TEST(ScalingModel, NcclTakesTheFasterOneOfRingAndTree) {
  const Network network{.algorithm = ReductionAlgorithm::kRingOrTree,
                        .ranks_per_machine = 8,
                        .bandwidth = 50e9,
                        .latency = 5e-6,
                        .bandwidth_within = 400e9,
                        .latency_within = 2e-6,
                        .start = 8e-6};
  // Large: a ring of 16 over the network. 2 * 15 / 16 GB at 50 GB/s, 2 * 14 and 2 * 1 messages.
  EXPECT_NEAR(CostOfReduction(network, 16, 1e9).seconds, 8e-6 + 0.0375 + 28 * 2e-6 + 2 * 5e-6,
              1e-12);
  // Small: a tree. 2 * 7 messages within machines and 2 * 7 between 128 machines.
  EXPECT_NEAR(CostOfReduction(network, 1024, 0).seconds, 8e-6 + 14 * 2e-6 + 14 * 5e-6, 1e-12);
  // Within a machine the network is not used.
  EXPECT_NEAR(CostOfReduction(network, 8, 1e9).seconds, 8e-6 + 2e9 * 7 / 8 / 400e9 + 14 * 2e-6,
              1e-12);
  EXPECT_EQ(CostOfReduction(network, 1, 1e9).seconds, 0);
}

constexpr double kBlock = 512 * 1024;

TEST(ScalingModel, MessagesCostProcessorTime) {
  const Network network{.ranks_per_machine = 2,
                        .latency_within = 1e-3,
                        .host = {.per_message = 1e-5, .per_byte = 1e-9, .per_summed_byte = 2e-9}};
  // Two blocks: a header, two scatters and two gathers to and from one other rank; 3 exchanges and
  // the header are 4 latencies. Half of the bytes twice, sent and received.
  const double bytes = 4 * kBlock;
  const ReductionCost two = CostOfReduction(network, 2, bytes);
  EXPECT_NEAR(two.processor_seconds, 5 * 2 * 1e-5 + 2 * bytes * 1e-9 + bytes * 2e-9, 1e-12);
  EXPECT_NEAR(two.seconds, two.processor_seconds + 4e-3, 1e-12);
  EXPECT_NEAR(CostOfReduction(network, 2, bytes, 2 * bytes).processor_seconds,
              two.processor_seconds, 1e-12)
      << "rounding costs nothing here";
}

TEST(ScalingModel, SlowNetworksHideTheProcessor) {
  // Four ranks on two machines: each rank sends a quarter of the values to each of the two ranks on
  // the other machine, and its quarter of the sums to one of them: S * 2 * (2 + 1) / 4.
  const Network network{
      .ranks_per_machine = 2, .bandwidth = 1e9, .latency = 0, .host = {.per_byte = 1e-10}};
  const ReductionCost four = CostOfReduction(network, 4, kBlock);
  EXPECT_NEAR(four.seconds, 1.5 * kBlock / 1e9, 1e-12);
  EXPECT_NEAR(CostOfReduction(network, 4, 16384).seconds, 2 * 16384 / 1e9, 1e-12)
      << "what is small is not relayed";
  EXPECT_NEAR(four.processor_seconds, 3 * kBlock * 1e-10, 1e-12);
}

// One processor, on which a reduction of 4 MB takes 10 ms.
Network OneProcessor(int ranks_per_machine = 1) {
  return {.ranks_per_machine = ranks_per_machine,
          .host = {.per_byte = 0.010 / (2 * 4 * kMegabyte)},
          .processors = ranks_per_machine,
          .threads = 1};
}

TEST(ScalingModel, CommunicationTakesProcessorTimeFromComputation) {
  // Half of the processor each: the bucket from 10 to 30 ms of backward, and so the second step.
  StepTimeline timeline = Timeline({0});
  timeline.backward_ms = {10, 10};
  const ScalingPrediction two = PredictStep(timeline, OneProcessor(), 2, 1);
  EXPECT_NEAR(two.step_ms, 5 + 30 + 1, 1e-9);
  EXPECT_NEAR(two.communication_ms, 20, 1e-9);
  EXPECT_NEAR(two.exposed_ms, 10, 1e-9);
}

TEST(ScalingModel, WaitingLeavesTheProcessorToComputation) {
  StepTimeline timeline = Timeline({0});
  Network network = OneProcessor();
  network.latency = 0.030 / 10;  // 8 blocks of header, scatter and gather: 6 latencies
  const ReductionCost cost = CostOfReduction(network, 2, 4 * kMegabyte);
  ASSERT_NEAR(cost.seconds, 0.010 + 6 * 0.003, 1e-9);
  // It needs 10 of 28 ms, and gets them: 20 ms of computation take 20 * 28 / 18 = 31.1 ms, 28 of
  // them with the bucket.
  const ScalingPrediction two = PredictStep(timeline, network, 2, 1);
  EXPECT_NEAR(two.step_ms, 5 + 10 + 28 + (20 - 18) + 1, 1e-9);
}

TEST(ScalingModel, MoreThreadsThanProcessorsTakeTurns) {
  Network network = OneProcessor(4);
  network.processors = 2;
  const StepTimeline timeline = Timeline({});
  EXPECT_NEAR(PredictStep(timeline, network, 2, 1).step_ms, 36, 1e-9);
  const ScalingPrediction four = PredictStep(timeline, network, 4, 1);
  EXPECT_NEAR(four.step_ms, 72, 1e-9);
  EXPECT_NEAR(four.efficiency, 0.5, 1e-9);
  EXPECT_EQ(four.exposed_ms, 0) << "computation, not communication";
}

TEST(ScalingModel, ProcessorsToSpareMakeCommunicationFree) {
  StepTimeline timeline = Timeline({0});
  Network network = OneProcessor();
  network.processors = 2;
  EXPECT_NEAR(PredictStep(timeline, network, 2, 1).step_ms, 36, 1e-9);
}

TEST(ScalingModel, WrongNumbersAreRefused) {
  const StepTimeline timeline = Timeline({0});
  EXPECT_THROW(PredictStep(timeline, TwoGpus(1), 0, 1), InvalidArgument);
  EXPECT_THROW(PredictStep(timeline, TwoGpus(1), 2, 0), InvalidArgument);
  EXPECT_THROW(PredictStep(timeline, TwoGpus(0), 2, 1), InvalidArgument);
  Network nowhere = TwoGpus(1);
  nowhere.ranks_per_machine = 0;
  EXPECT_THROW(PredictStep(timeline, nowhere, 2, 1), InvalidArgument);
}

}  // namespace
}  // namespace caffe
