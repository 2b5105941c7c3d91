#include "caffe/cuda/samples.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace caffe::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Samples = std::vector<std::optional<Sample>>;

TEST(SamplesTest, MostThatAgreeAreRight) {
  EXPECT_THAT(Agreeing(Samples{{{1, 2}}, {{1, 2.01}}, {{1, 3}}}), ElementsAre(true, true, false));
  EXPECT_THAT(Agreeing(Samples{{{1, 3}}, {{1, 2}}, {{1, 2}}}), ElementsAre(false, true, true));
}

// The heuristics put it first.
TEST(SamplesTest, OfTwoThatDisagreeTheFirstIsRight) {
  EXPECT_THAT(Agreeing(Samples{{{1, 2}}, {{1, 3}}}), ElementsAre(true, false));
}

TEST(SamplesTest, OneWithoutNumbersIsWrong) {
  EXPECT_THAT(Agreeing(Samples{{{NAN, 2}}, {{1, 2}}}), ElementsAre(false, true));
  EXPECT_THAT(Agreeing(Samples{{{HUGE_VAL, 2}}, {{HUGE_VAL, 2}}, {{1, 2}}}),
              ElementsAre(false, false, true));
}

TEST(SamplesTest, OneThatDidNotRunIsLeftOut) {
  EXPECT_THAT(Agreeing(Samples{std::nullopt, {{1, 2}}}), ElementsAre(false, true));
  EXPECT_THAT(Agreeing(Samples{std::nullopt, {{NAN, 2}}}), ElementsAre(false, true));
  EXPECT_THAT(Agreeing(Samples{}), IsEmpty());
}

TEST(SamplesTest, ResultsOfNothingAgree) {
  EXPECT_THAT(Agreeing(Samples{{{0, 0}}, {{0, 0}}}), ElementsAre(true, true));
  EXPECT_THAT(Agreeing(Samples{Sample(), Sample()}), ElementsAre(true, true));
}

TEST(SamplesTest, StretchesAreSpreadOverTheArray) {
  const std::shared_ptr<Device> device = MakeDevice(DeviceKind::kCpu);
  std::vector<float> values(10);
  std::iota(values.begin(), values.end(), 0.f);
  EXPECT_THAT(SampleOf(*device, DType::kFloat, values.data(), 10, 3, 2),
              ElementsAre(0, 1, 3, 4, 6, 7));
  EXPECT_THAT(SampleOf(*device, DType::kFloat, values.data(), 2, 3, 2), ElementsAre(0, 1));
}

}  // namespace
}  // namespace caffe::cuda
