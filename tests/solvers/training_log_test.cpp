#include "caffe/solvers/training_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace caffe {
namespace {

std::string LogOf(const DisplayReport& report) {
  ::testing::internal::CaptureStderr();
  TrainingLog({}).OnDisplay(report);
  return ::testing::internal::GetCapturedStderr();
}

// Per-class numbers of ImageNet still have a line each.
TEST(TrainingLogTest, OutputsOfManyValuesHaveOneLine) {
  DisplayReport report;
  report.outputs = {{"class", 0, std::vector<float>(1000, 1)},
                    {"map", 0, std::vector<float>(1001, 2)},
                    {"loss", 1, {3}}};
  report.outputs[1].values[7] = -9;
  const std::string log = LogOf(report);
  EXPECT_THAT(log, ::testing::HasSubstr("    Train net output #999: class = 1\n"));
  EXPECT_THAT(log, ::testing::HasSubstr(
                       "    Train net output #1000: map = -9 to 2, mean 1.98901 (1001 values)\n"));
  EXPECT_THAT(log, ::testing::HasSubstr("    Train net output #2001: loss = 3 (* 1 = 3 loss)\n"));
}

}  // namespace
}  // namespace caffe
