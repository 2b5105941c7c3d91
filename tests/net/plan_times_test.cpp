#include "caffe/plan_times.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

#include "caffe/io/atomic_file.hpp"
#include "caffe/net/step_times.hpp"
#include "caffe/plan_report.hpp"
#include "tests/support/net_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Two equal convolutions, kernels that need indices or labels, and a host call.
constexpr const char* kTimedNet = R"(
  layer { name: "data" type: "Input" top: "x" top: "t"
          input_param { shape { dim: 4 dim: 8 dim: 6 dim: 6 } shape { dim: 4 } } }
  layer { name: "noise" type: "DummyData" top: "n"
          dummy_data_param { shape { dim: 4 dim: 8 dim: 6 dim: 6 }
                             data_filler { type: "gaussian" } } }
  layer { name: "a" type: "Convolution" bottom: "x" top: "a"
          convolution_param { num_output: 8 kernel_size: 3 pad: 1 bias_term: false } }
  layer { name: "b" type: "Convolution" bottom: "n" top: "b"
          convolution_param { num_output: 8 kernel_size: 3 pad: 1 bias_term: false } }
  layer { name: "join" type: "Eltwise" bottom: "a" bottom: "b" top: "join"
          eltwise_param { operation: PROD } }
  layer { name: "pool" type: "Pooling" bottom: "join" top: "pool"
          pooling_param { kernel_size: 2 stride: 2 } }
  layer { name: "norm" type: "BatchNorm" bottom: "pool" top: "pool" }
  layer { name: "drop" type: "Dropout" bottom: "pool" top: "pool" }
  layer { name: "y" type: "InnerProduct" bottom: "pool" top: "y"
          inner_product_param { num_output: 5 } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "y" bottom: "t" top: "loss" })";

constexpr const char* kSmallNet = R"(
  layer { name: "data" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }
  layer { name: "y" type: "InnerProduct" bottom: "x" top: "y"
          inner_product_param { num_output: 5 } }
  layer { name: "loss" type: "Reduction" bottom: "y" top: "loss" loss_weight: 1 })";

class PlanTimesTest : public ::testing::Test {
 protected:
  PlanTimesTest() { setenv("XDG_CACHE_HOME", folder_.path("cache").c_str(), 1); }
  ~PlanTimesTest() override { unsetenv("XDG_CACHE_HOME"); }

  static std::unique_ptr<Net> Planned(Precision precision = FP32, const char* text = kTimedNet) {
    NetParameter param = testing::ParseNet(text);
    param.mutable_state()->set_phase(TRAIN);
    return std::make_unique<Net>(
        param, NetOptions{.keep_all = false, .precision = precision, .allocate = false});
  }
  static PlanTimes TimesAndWarnings(std::string* warnings) {
    const std::unique_ptr<Net> net = Planned(FP32, kSmallNet);
    ::testing::internal::CaptureStderr();
    PlanTimes times = TimesOfPlan(*net);
    *warnings = ::testing::internal::GetCapturedStderr();
    return times;
  }
  std::string File() const { return StepTimesPath(*Planned()->graph().options.device); }

  testing::TemporaryFolder folder_;
};

TEST_F(PlanTimesTest, EachStepButCallsOfTheHostHasATime) {
  for (const Precision precision : {FP32, BF16}) {
    const std::unique_ptr<Net> net = Planned(precision);
    const PlanTimes times = TimesOfPlan(*net);
    const std::vector<PlanStep> steps = PlanSteps(*net);
    ASSERT_EQ(times.step_ms.size(), steps.size());
    double sum = 0;
    for (size_t i = 0; i < steps.size(); ++i) {
      EXPECT_EQ(times.step_ms[i].has_value(), !steps[i].op.starts_with("HostCall")) << steps[i].op;
      if (!times.step_ms[i]) continue;
      EXPECT_GE(*times.step_ms[i], 0) << steps[i].op;
      EXPECT_LT(*times.step_ms[i], 1000) << steps[i].op;
      sum += *times.step_ms[i];
    }
    EXPECT_NEAR(times.forward_ms + times.backward_ms, sum, 1e-9);
    EXPECT_GT(times.forward_ms, 0);
    EXPECT_GT(times.backward_ms, 0);
    EXPECT_EQ(times.host_calls, 1);
    EXPECT_EQ(times.batch, 4);
    ASSERT_EQ(times.layers.size(), 10U);
    EXPECT_GT(times.layers[2].forward_ms, 0) << times.layers[2].layer;
  }
}

TEST_F(PlanTimesTest, EqualStepsAreMeasuredOnceAndKept) {
  const PlanTimes first = TimesOfPlan(*Planned());
  EXPECT_GT(first.measured, 0);
  EXPECT_LT(first.measured, static_cast<int>(first.step_ms.size()));
  const double forward_a = first.layers[2].forward_ms, forward_b = first.layers[3].forward_ms;
  EXPECT_EQ(forward_a, forward_b) << "the same kernel on the same shapes";
  const PlanTimes second = TimesOfPlan(*Planned());
  EXPECT_EQ(second.measured, 0);
  EXPECT_NEAR(second.milliseconds(), first.milliseconds(), 1e-4 * first.milliseconds());
  EXPECT_GT(TimesOfPlan(*Planned(BF16)).measured, 0) << "other types";
}

TEST_F(PlanTimesTest, TheFileIsOfTheMachine) {
  EXPECT_THAT(File(), StartsWith(folder_ / "cache/cortado/step_times-"));
  EXPECT_THAT(File(), HasSubstr("_threads_"));
  TimesOfPlan(*Planned());
  EXPECT_THAT(ReadFile(File()), StartsWith("cortado step times 1\n"));
}

TEST_F(PlanTimesTest, AFileThatIsNotWholeIsWrittenAnew) {
  TimesOfPlan(*Planned(FP32, kSmallNet));
  const std::string whole = ReadFile(File());
  const std::string last = whole.substr(0, whole.rfind("end "));
  const std::vector<std::string> files = {"",
                                          whole.substr(0, whole.size() / 2),
                                          last,
                                          last + "end 1\n",
                                          "cortado step times 1\nfast\tkernel\nend 1\n",
                                          "cortado step times 1\n-1\tkernel\nend 1\n",
                                          std::string("\0\1\2", 3)};
  for (const std::string& torn : files) {
    std::ofstream(File(), std::ios::trunc) << torn;
    std::string warnings;
    EXPECT_GT(TimesAndWarnings(&warnings).measured, 0);
    EXPECT_THAT(warnings, HasSubstr(File() + ": not a whole file of step times")) << torn;
    EXPECT_EQ(warnings.find("not a whole"), warnings.rfind("not a whole")) << "said once";
    EXPECT_EQ(TimesAndWarnings(&warnings).measured, 0);
    EXPECT_EQ(warnings, "");
  }
}

TEST_F(PlanTimesTest, AFolderThatCannotBeWrittenIsAWarning) {
  std::ofstream(folder_ / "cache") << "a file where the folder should be";
  std::string warnings;
  const PlanTimes times = TimesAndWarnings(&warnings);
  EXPECT_GT(times.milliseconds(), 0);
  EXPECT_THAT(warnings, HasSubstr("Step times are not kept: " + File()));
  EXPECT_EQ(warnings.find("not kept"), warnings.rfind("not kept")) << "said once";
}

TEST_F(PlanTimesTest, WithoutAFolderTimesAreNotKept) {
  const std::string home = std::getenv("HOME") != nullptr ? std::getenv("HOME") : "";
  setenv("XDG_CACHE_HOME", "relative", 1);
  unsetenv("HOME");
  std::string warnings;
  EXPECT_GT(TimesAndWarnings(&warnings).milliseconds(), 0);
  EXPECT_THAT(warnings, HasSubstr("neither XDG_CACHE_HOME nor HOME names a folder"));
  setenv("HOME", home.c_str(), 1);
}

}  // namespace
}  // namespace caffe
