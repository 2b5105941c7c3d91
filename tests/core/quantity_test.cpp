#include "caffe/core/quantity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Quantity, BandwidthsAreInBytesPerSecond) {
  EXPECT_DOUBLE_EQ(ParseBandwidth("-bandwidth", "50GB/s"), 50e9);
  EXPECT_DOUBLE_EQ(ParseBandwidth("-bandwidth", "400Gb/s"), 50e9);
  EXPECT_DOUBLE_EQ(ParseBandwidth("-bandwidth", "400Gbit/s"), 50e9);
  EXPECT_DOUBLE_EQ(ParseBandwidth("-bandwidth", "1.5 MB/s"), 1.5e6);
  EXPECT_DOUBLE_EQ(ParseBandwidth("-bandwidth", "2e3KB/s"), 2e6);
  EXPECT_DOUBLE_EQ(ParseBandwidth("-bandwidth", "7B/s"), 7);
}

TEST(Quantity, DurationsAreInSeconds) {
  EXPECT_DOUBLE_EQ(ParseDuration("-latency", "5us"), 5e-6);
  EXPECT_DOUBLE_EQ(ParseDuration("-latency", "0.2 ms"), 2e-4);
  EXPECT_DOUBLE_EQ(ParseDuration("-latency", "700ns"), 7e-7);
  EXPECT_DOUBLE_EQ(ParseDuration("-latency", "1s"), 1);
  EXPECT_DOUBLE_EQ(ParseDuration("-latency", "0us"), 0);
}

// Expects a message with the flag, the value and an example of a valid one.
template <typename Fn>
void ExpectRefused(const Fn& parse, const std::string& text, const std::string& example) {
  try {
    parse("-flag", text);
    FAIL() << text;
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("-flag is '" + text + "'"), HasSubstr(example)));
  }
}

TEST(Quantity, OtherTextIsRefused) {
  for (const char* text : {"", "50", "GB/s", "50 GB", "50gb/s", "50GB/s!", "0GB/s", "-1GB/s",
                           "1e400GB/s", "1e308TB/s", "inf GB/s", "nan GB/s", "fast", "5us"})
    ExpectRefused(ParseBandwidth, text, "such as 50GB/s (bytes) or 400Gb/s (bits)");
  for (const char* text : {"", "5", "us", "-5us", "5 minutes", "1e400s", "nan us", "5GB/s"})
    ExpectRefused(ParseDuration, text, "such as 5us or 0.2ms");
}

}  // namespace
}  // namespace caffe
