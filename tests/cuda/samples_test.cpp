#include "caffe/cuda/samples.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace caffe::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Agreement of algorithms with one output each.
std::vector<bool> AgreeingOf(const std::vector<std::optional<Sample>>& samples) {
  std::vector<std::optional<Results>> all;
  for (const std::optional<Sample>& sample : samples)
    all.push_back(sample ? std::optional<Results>({*sample}) : std::nullopt);
  return Agreeing(all);
}

TEST(SamplesTest, MostThatAgreeAreRight) {
  EXPECT_THAT(AgreeingOf({{{1, 2}}, {{1, 2.01}}, {{1, 3}}}), ElementsAre(true, true, false));
  EXPECT_THAT(AgreeingOf({{{1, 3}}, {{1, 2}}, {{1, 2}}}), ElementsAre(false, true, true));
}

// The heuristics put the right one first.
TEST(SamplesTest, OfTwoThatDisagreeTheFirstIsRight) {
  EXPECT_THAT(AgreeingOf({{{1, 2}}, {{1, 3}}}), ElementsAre(true, false));
}

TEST(SamplesTest, OneThatLacksNumbersOfOthersIsWrong) {
  EXPECT_THAT(AgreeingOf({{{NAN, 2}}, {{1, 2}}}), ElementsAre(false, true));
  EXPECT_THAT(AgreeingOf({{{HUGE_VAL, 2}}, {{HUGE_VAL, 2}}, {{1, 2}}}),
              ElementsAre(false, false, true));
}

// This happens where a result is part of a tensor.
TEST(SamplesTest, WhatNobodyWritesDoesNotCount) {
  EXPECT_THAT(AgreeingOf({{{NAN, 2}}, {{NAN, 1}}, {{NAN, 1}}}), ElementsAre(false, true, true));
  EXPECT_THAT(AgreeingOf({{{NAN, NAN}}, {{NAN, NAN}}}), ElementsAre(true, true));
}

TEST(SamplesTest, OneThatDidNotRunIsLeftOut) {
  EXPECT_THAT(AgreeingOf({std::nullopt, {{1, 2}}}), ElementsAre(false, true));
  EXPECT_THAT(AgreeingOf({std::nullopt, {{NAN, 2}}}), ElementsAre(false, true));
  EXPECT_THAT(AgreeingOf({std::nullopt, std::nullopt}), ElementsAre(false, false));
  EXPECT_THAT(AgreeingOf({}), IsEmpty());
}

TEST(SamplesTest, ResultsOfNothingAgree) {
  EXPECT_THAT(AgreeingOf({{{0, 0}}, {{0, 0}}}), ElementsAre(true, true));
  EXPECT_THAT(AgreeingOf({Sample(), Sample()}), ElementsAre(true, true));
}

// Squares are larger than the numbers that they come from.
TEST(SamplesTest, EachOutputIsComparedByItself) {
  const Results right = {{1, 2}, {1e9, 2e9}};
  EXPECT_THAT(Agreeing({right, Results{{0, 0}, {1e9, 2e9}}, right}),
              ElementsAre(true, false, true));
}

TEST(SamplesTest, StretchesAreSpreadOverTheArray) {
  const std::shared_ptr<Device> device = MakeDevice(DeviceKind::kCpu);
  std::vector<float> values(10);
  std::iota(values.begin(), values.end(), 0.f);
  EXPECT_THAT(SampleOf(*device, DType::kFloat, values.data(), 10, 3, 2),
              ElementsAre(0, 1, 4, 5, 8, 9));
  EXPECT_THAT(SampleOf(*device, DType::kFloat, values.data(), 5, 3, 2), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(SampleOf(*device, DType::kFloat, values.data(), 0, 3, 2), IsEmpty());
}

}  // namespace
}  // namespace caffe::cuda
