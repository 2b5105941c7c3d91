// Plans for a GPU that is not present: kernels, algorithms, shapes, types and memory, as cuDNN's
// own planner chooses them for the chip.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "caffe/device/device.hpp"
#include "caffe/error.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/graph/verifier.hpp"
#include "caffe/io/net_files.hpp"
#include "caffe/net.hpp"
#include "caffe/plan_report.hpp"
#include "tests/support/folders.hpp"

namespace caffe {
namespace {

struct PlannedNet {
  const char* file;
  Precision precision;
  const char* chip;
  int convolutions;  // in forward
};

void PrintTo(const PlannedNet& net, std::ostream* out) {
  *out << net.file << " " << Precision_Name(net.precision) << " " << net.chip;
}

NetParameter Benchmark(const std::string& file) {
  NetParameter param =
      ReadNetText(testing::SourcePath(StrCat("benchmarks/nets/", file, ".prototxt")));
  param.mutable_state()->set_phase(TRAIN);
  return param;
}

NetOptions For(const std::string& chip, Precision precision = FP32) {
  NetOptions options{.keep_all = false, .seed = 1, .allocate = false};
  options.precision = precision;
  options.described_device = chip;
  return options;
}

bool StartsWith(const std::string& text, const char* prefix) {
  return text.rfind(prefix, 0) == 0;
}

class DescribedDeviceTest : public ::testing::TestWithParam<PlannedNet> {
 protected:
  void SetUp() override {
    if (!IsDeviceBuilt(DeviceKind::kCuda)) GTEST_SKIP() << "this build has no CUDA";
  }
};

TEST_P(DescribedDeviceTest, ConvolutionsAndProductsRunByTheVendorsLibraries) {
  const Net net(Benchmark(GetParam().file), For(GetParam().chip, GetParam().precision));
  VerifyGraph(net.graph(), "all passes",
              {.types = true, .layouts = true, .kernels = true, .memory = true});
  int convolutions = 0;
  int64_t workspace = 0;
  for (const Node* node : net.graph().ScheduledNodes())
    workspace = std::max(workspace, static_cast<int64_t>(node->kernel.workspace_bytes));
  for (const PlanStep& step : PlanSteps(net)) {
    ASSERT_NE(step.kernel, "") << step.op;
    if (StartsWith(step.op, "Conv[") || StartsWith(step.op, "Fused[Conv[")) ++convolutions;
    if (StartsWith(step.op, "Conv")) {
      EXPECT_THAT(step.kernel, ::testing::HasSubstr("-cudnn"))
          << step.op << ::testing::PrintToString(step.refusals);
      EXPECT_FALSE(step.algorithms.empty()) << step.op;
    }
    if (StartsWith(step.op, "Gemm")) {
      EXPECT_EQ(step.kernel, "gemm-cublaslt") << ::testing::PrintToString(step.refusals);
    }
  }
  EXPECT_EQ(convolutions, GetParam().convolutions);
  EXPECT_EQ(net.graph().workspace_bytes, workspace);
  const PlanMemory memory = MemoryOfPlan(net, 1);
  EXPECT_EQ(memory.program, 0) << "this process is not on the device";
  EXPECT_GT(memory.activations, 0);
}

INSTANTIATE_TEST_SUITE_P(Nets, DescribedDeviceTest,
                         ::testing::Values(PlannedNet{"alexnet", FP32, "H200", 5},
                                           PlannedNet{"alexnet", FP16, "T4", 5},
                                           PlannedNet{"googlenet", BF16, "H200", 59},
                                           PlannedNet{"resnet50", FP32, "A100", 53},
                                           PlannedNet{"resnet50", BF16, "H200", 53}));

class DescribedChipTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!IsDeviceBuilt(DeviceKind::kCuda)) GTEST_SKIP() << "this build has no CUDA";
  }
};

// MobileNet-v2, without the need for its data.
NetParameter MobileNet() {
  NetParameter param = ReadNetText(testing::SourcePath("models/mobilenet_v2/train_val.prototxt"));
  param.mutable_state()->set_phase(TRAIN);
  for (LayerParameter& layer : *param.mutable_layer()) {
    if (layer.type() != "Data") continue;
    layer.set_type("DummyData");
    layer.clear_data_param();
    layer.clear_transform_param();
    for (const std::vector<int>& shape : {std::vector<int>{8, 3, 224, 224}, {8}}) {
      BlobShape& top = *layer.mutable_dummy_data_param()->add_shape();
      for (const int dim : shape) top.add_dim(dim);
    }
  }
  return param;
}

// This also holds in backward, so that no image is reordered before or after them.
TEST_F(DescribedChipTest, ConvolutionsOfOneChannelEachTakeChannelsThatLieLast) {
  for (const char* chip : {"A100", "H200"}) {
    for (const Precision precision : {FP32, FP16, BF16}) {
      SCOPED_TRACE(StrCat(chip, " ", Precision_Name(precision)));
      const Net net(MobileNet(), For(chip, precision));
      std::map<std::string, int> kernels;
      for (const Node* node : net.graph().ScheduledNodes()) {
        if (node->op.Attributes().find("group ") == std::string::npos) continue;
        ++kernels[node->kernel.name];
        const auto check = [&](const Operand& operand) {
          if (operand.value == nullptr || operand->desc.shape.num_axes() != 4) return;
          const bool is_filter = operand->desc.shape[1] == 1;
          EXPECT_TRUE(is_filter || operand->desc.layout == Layout::kChannelsLast)
              << node->op.name() << " of " << operand->name;
        };
        std::ranges::for_each(node->inputs, check);
        std::ranges::for_each(node->outputs, check);
      }
      EXPECT_THAT(kernels, ::testing::ElementsAre(std::pair("conv-cudnn", 17),
                                                  std::pair("conv-grad-data-cudnn", 17),
                                                  std::pair("conv-grad-weights-cudnn", 17)));
    }
  }
}

TEST_F(DescribedChipTest, ReportNamesChipAlgorithmsAndMemory) {
  const Net net(Benchmark("lenet"), For("H200"));
  const std::string report = FormatPlan(net, {MemoryOfPlan(net, 1)});
  for (const char* part : {"H200", "compute capability 9.0", "conv-cudnn", "gemm-cublaslt",
                           "algorithms", "Workspace:", "Free on it:   139.0 GiB"}) {
    EXPECT_THAT(report, ::testing::HasSubstr(part));
  }
}

TEST_F(DescribedChipTest, StrictFloatsTakeOtherEngines) {
  NetOptions strict = For("H200");
  strict.strict_fp32 = true;
  const auto engines = [](const NetOptions& options) {
    const Net net(Benchmark("alexnet"), options);
    std::vector<std::string> names;
    for (const PlanStep& step : PlanSteps(net)) {
      if (StartsWith(step.op, "Conv[")) names.push_back(step.algorithms.at(0));
    }
    return names;
  };
  EXPECT_NE(engines(For("H200")), engines(strict));
}

TEST_F(DescribedChipTest, AnEngineCanBeAskedForByNumber) {
  NetParameter param = Benchmark("lenet");
  param.set_default_conv_algos_override("0,0,0");
  const Net net(param, For("H200"));
  for (const PlanStep& step : PlanSteps(net)) {
    if (!StartsWith(step.op, "Conv") || step.kernel.find("cudnn") == std::string::npos) continue;
    EXPECT_THAT(step.algorithms.at(0), ::testing::MatchesRegex("eng0([_ ].*)?")) << step.op;
  }
  param.set_default_conv_algos_override("9999,-1,-1");
  const Net other(param, For("H200"));
  for (const PlanStep& step : PlanSteps(other)) {
    if (!StartsWith(step.op, "Conv[")) continue;
    EXPECT_EQ(step.kernel, "conv-reference");
    EXPECT_THAT(step.refusals.at(0), ::testing::HasSubstr("no engine 9999"));
  }
}

TEST_F(DescribedChipTest, IsNotRunOn) {
  NetOptions options = For("H200");
  options.allocate = true;
  EXPECT_THROW(Net(Benchmark("lenet"), options), InvalidArgument);
}

}  // namespace
}  // namespace caffe
