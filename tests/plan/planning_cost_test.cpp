// The cost of planning: nothing is run, so planning a large net must not take long or much memory.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>

#include "caffe/error.hpp"
#include "caffe/net.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

// The time of this process; other processes do not count.
double ProcessorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int64_t PeakMebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

double SecondsToPlan(const std::string& text) {
  const NetParameter definition = testing::ParseNet(text);
  const double begin = ProcessorSeconds();
  Net(definition, {.keep_all = false, .allocate = false});
  return ProcessorSeconds() - begin;
}

// oneDNN built tables of all positions: 22 s and 7 GiB, 100 s and more.
TEST(PlanningCostTest, LargeKernelsAndWideImages) {
  const int64_t before = PeakMebibytes();
  EXPECT_LT(SecondsToPlan(R"(
      layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 1 dim: 1 dim: 1 } } }
      layer { name: "c" type: "Convolution" bottom: "x" top: "y"
        convolution_param { num_output: 1 kernel_size: 30001 pad: 15000 } })"),
            10);
  EXPECT_LT(SecondsToPlan(R"(
      force_backward: true
      layer { name: "x" type: "Input" top: "x"
        input_param { shape { dim: 2 dim: 3 dim: 3 dim: 16777217 } } }
      layer { name: "c" type: "Convolution" bottom: "x" top: "y"
        convolution_param { num_output: 2 kernel_size: 1 pad: 1 } })"),
            10);
  EXPECT_LT(PeakMebibytes() - before, 1024);
}

// A chain of sums that all read the input.
std::string SumsOf(int layers) {
  std::string text = "layer { name: 'x' type: 'Input' top: 'y0' input_param { shape { dim: 8 } } }";
  for (int i = 0; i < layers; ++i) {
    const std::string to = std::to_string(i + 1);
    text += " layer { name: 's" + to + "' type: 'Eltwise' bottom: 'y" + std::to_string(i) +
            "' bottom: 'y0' top: 'y" + to + "' }";
  }
  return text;
}

// 8 times as many steps took 60 times as long, because each value was compared with all others.
TEST(PlanningCostTest, GrowsLittleFasterThanTheSteps) {
  SecondsToPlan(SumsOf(10));  // excludes the cost of the first net
  EXPECT_LT(SecondsToPlan(SumsOf(8000)), 24 * SecondsToPlan(SumsOf(1000)));
}

}  // namespace
}  // namespace caffe
