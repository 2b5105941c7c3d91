#include "caffe/core/join_refusals.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace caffe {
namespace {

using ::testing::ElementsAre;

TEST(JoinRefusalsTest, KernelsWithOneReasonAreJoined) {
  EXPECT_THAT(
      JoinRefusals({"a: does not take float16", "b: 3 groups: too many", "c: does not take float16",
                    "d: 3 groups", "e: 3 groups: too many"}),
      ElementsAre("a, c: does not take float16", "b, e: 3 groups: too many", "d: 3 groups"));
  EXPECT_THAT(JoinRefusals({}), ElementsAre());
}

}  // namespace
}  // namespace caffe
