#include "caffe/net/memory_shortage.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace caffe {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

TEST(MemoryShortageTest, IsSilentWhereThePlanFits) {
  EXPECT_EQ(MemoryShortage({10 * kGiB, kGiB, kGiB}, 12 * kGiB, 256), "");
}

TEST(MemoryShortageTest, NamesNeedFreeMemoryAndTheLargestBatchThatFits) {
  const std::string text = MemoryShortage({16 * kGiB, kGiB, kGiB}, 10 * kGiB, 256);
  EXPECT_THAT(text, ::testing::HasSubstr("needs 18.00 GiB"));
  EXPECT_THAT(text, ::testing::HasSubstr("10.00 GiB are free"));
  EXPECT_THAT(text, ::testing::HasSubstr("batch_size 128 fits, 256 does not"));
}

// Memory that libraries take later is available neither to the plan nor to a smaller batch.
TEST(MemoryShortageTest, LeavesRoomForLibraries) {
  EXPECT_EQ(MemoryShortage({10 * kGiB, kGiB, kGiB, kGiB}, 13 * kGiB, 256), "");
  const std::string text = MemoryShortage({8 * kGiB, kGiB, kGiB, 2 * kGiB}, 8 * kGiB, 256);
  EXPECT_THAT(text, ::testing::HasSubstr("needs 12.00 GiB"));
  EXPECT_THAT(text, ::testing::HasSubstr("drivers and libraries about 2.00 GiB"));
  EXPECT_THAT(text, ::testing::HasSubstr("batch_size 128 fits"));
}

TEST(MemoryShortageTest, SmallSizesAreInMebibytes) {
  const std::string text = MemoryShortage({100 << 20, 0, 1 << 20}, 98 << 20, 4);
  EXPECT_THAT(text, ::testing::HasSubstr("needs 101.0 MiB"));
  EXPECT_THAT(text, ::testing::HasSubstr("98.0 MiB are free"));
}

// One byte is missing: the batch size that is too large is not offered.
TEST(MemoryShortageTest, OffersASmallerBatchThanThePlans) {
  const std::string text = MemoryShortage({1000, 0, 0}, 999, 10);
  EXPECT_THAT(text, ::testing::HasSubstr("batch_size 9 fits"));
}

TEST(MemoryShortageTest, SaysWhenNoBatchFits) {
  EXPECT_THAT(MemoryShortage({kGiB, kGiB, 2 * kGiB}, 2 * kGiB, 8),
              ::testing::HasSubstr("not even batch_size 1 fits"));
  EXPECT_THAT(MemoryShortage({kGiB, 0, 0}, 100, 0), ::testing::HasSubstr("lower batch_size"));
}

}  // namespace
}  // namespace caffe
