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

std::string LstmOf(int steps) {
  const std::string extent = "dim: " + std::to_string(steps) + " dim: 1";
  return "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { " + extent +
         " dim: 1 } } } layer { name: 'cont' type: 'Input' top: 'cont' input_param { shape { " +
         extent +
         " } } } layer { name: 'l' type: 'LSTM' bottom: 'x' bottom: 'cont' top: 'y' "
         "recurrent_param { num_output: 1 } }";
}

// 8 times as many steps took 60 times as long, because each value was compared with all others.
TEST(PlanningCostTest, GrowsLittleFasterThanTheStepsOfALstm) {
  SecondsToPlan(LstmOf(10));  // excludes the cost of the first net
  EXPECT_LT(SecondsToPlan(LstmOf(4000)), 24 * SecondsToPlan(LstmOf(500)));
}

}  // namespace
}  // namespace caffe
