#include "caffe/data/parser_threads.hpp"

#include <gtest/gtest.h>

namespace caffe::data {
namespace {

DataParameter Reading(uint32_t batch_size, uint32_t threads = 0) {
  DataParameter reading;
  reading.set_batch_size(batch_size);
  if (threads > 0) reading.set_parser_threads(threads);
  return reading;
}

TEST(ParserThreadsTest, FollowTheProcessorsThatRanksShare) {
  const FirstRecord jpeg{.is_encoded = true, .bytes = 20000};
  const DataParameter reading = Reading(256);
  EXPECT_EQ(ParserThreads(reading, jpeg, /*ranks=*/1, /*processors=*/1), 1);
  EXPECT_EQ(ParserThreads(reading, jpeg, 1, 16), 16);
  EXPECT_EQ(ParserThreads(reading, jpeg, 8, 128), 16);
  EXPECT_EQ(ParserThreads(reading, jpeg, 256, 128), 4);  // ranks on many machines
  EXPECT_EQ(ParserThreads(reading, jpeg, 256, 2), 2);
  EXPECT_EQ(ParserThreads(Reading(6), jpeg, 1, 16), 6);
}

TEST(ParserThreadsTest, AreOneForSmallRecordsAndAsManyAsTheTextSays) {
  const FirstRecord digit{.is_encoded = false, .bytes = 800},
      raw{.is_encoded = false, .bytes = 1 << 18};
  EXPECT_EQ(ParserThreads(Reading(64), digit, 1, 16), 1);
  EXPECT_EQ(ParserThreads(Reading(64), raw, 1, 16), 16);
  EXPECT_EQ(ParserThreads(Reading(64, 3), digit, 1, 16), 3);
  EXPECT_EQ(ParserThreads(Reading(64, 5000), raw, 1, 16), 1024);
}

}  // namespace
}  // namespace caffe::data
