// Plans in 8 bits for a GPU that is not present, as cuDNN's own planner chooses them for the chip.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "caffe/device/device.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/io/net_files.hpp"
#include "caffe/net.hpp"
#include "caffe/plan_report.hpp"
#include "tests/support/blob_ranges.hpp"
#include "tests/support/folders.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

struct Planned {
  const char* net;
  const char* chip;
  std::map<std::string, int> kernels;  // for convolutions, products and sums
};

void PrintTo(const Planned& net, std::ostream* out) {
  *out << net.net << " " << net.chip;
}

class DescribedInt8Test : public ::testing::TestWithParam<Planned> {
 protected:
  void SetUp() override {
    if (!IsDeviceBuilt(DeviceKind::kCuda)) GTEST_SKIP() << "this build has no CUDA";
  }

  NetParameter Deployed() const {
    NetParameter param =
        ReadNetText(testing::SourcePath(StrCat("models/", GetParam().net, "/deploy.prototxt")));
    param.mutable_state()->set_phase(TEST);
    return param;
  }
  NetOptions Options() const {
    NetOptions options{.keep_all = false, .with_backward = false, .allocate = false};
    options.described_device = GetParam().chip;
    return options;
  }
  // Plausible ranges for any blob. The names are those of a plan for this processor.
  std::string Calibration() const {
    const NetParameter param = Deployed();
    const Net net(param, {.with_backward = false, .allocate = false});
    testing::Ranges ranges;
    for (const std::string& blob : net.blob_names()) ranges[blob] = {0, 6};
    testing::WriteRanges(param.name(), ranges, folder_.path("ranges.json"));
    return folder_.path("ranges.json");
  }

  testing::TemporaryFolder folder_;
};

TEST_P(DescribedInt8Test, ProductsComputeIn8Bits) {
  NetOptions options = Options();
  options.precision = INT8;
  options.calibration = Calibration();
  const Net net(Deployed(), options);
  std::map<std::string, int> kernels;
  for (const PlanStep& step : PlanSteps(net)) {
    for (const char* op : {"Conv[", "Gemm[", "EltwiseSum"}) {
      if (step.op.starts_with(op)) ++kernels[step.kernel];
    }
  }
  EXPECT_EQ(kernels, GetParam().kernels);
  for (const Node* node : net.graph().ScheduledNodes()) {
    for (const Value* output : node->outputs) {
      if (output == nullptr || output->is_scratch) continue;
      EXPECT_NE(output->desc.dtype, DType::kUInt8) << output->name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Nets, DescribedInt8Test,
    ::testing::Values(
        Planned{"resnet50", "H200", {{"conv-cudnn-int8", 53}, {"gemm-cudnn-int8", 1}}},
        Planned{"resnet50", "T4", {{"conv-cudnn-int8", 53}, {"gemm-cudnn-int8", 1}}},
        Planned{"mobilenet_v2", "H200", {{"conv-cudnn-int8", 37}, {"conv-int8-channels", 17}}}));

}  // namespace
}  // namespace caffe
