// The plans of all models, one line each, as committed in plans/<device>.txt. A commit that changes
// one says why; CAFFE_UPDATE_PLANS=1 writes the file again.
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "caffe/cpu/processor.hpp"
#include "caffe/error.hpp"
#include "tests/support/folders.hpp"
#include "tests/support/op_case.hpp"
#include "tests/support/plan_summary.hpp"

namespace caffe {
namespace {

namespace fs = std::filesystem;
using testing::PlanSummary;

const std::map<std::string, PrecisionDefaults>& Precisions() {
  const auto all = [](DType type) { return PrecisionDefaults{type, type, type, type}; };
  static const std::map<std::string, PrecisionDefaults> precisions = {
      {"fp32", all(DType::kFloat)},
      {"bf16", all(DType::kBFloat16)},
      {"fp16", all(DType::kFloat16)},
      {"mixed", {DType::kFloat16, DType::kFloat16, DType::kFloat, DType::kFloat}}};
  return precisions;
}

std::optional<DType> TypeOf(bool has, Type type) {
  if (!has) return std::nullopt;
  return type == FLOAT16 ? DType::kFloat16 : type == BFLOAT16 ? DType::kBFloat16 : DType::kFloat;
}

// The defaults of a net that sets any of them itself.
std::optional<PrecisionDefaults> OwnPrecision(const NetParameter& net) {
  const PrecisionDefaults own = {
      TypeOf(net.has_default_forward_type(), net.default_forward_type()),
      TypeOf(net.has_default_backward_type(), net.default_backward_type()),
      TypeOf(net.has_default_forward_math(), net.default_forward_math()),
      TypeOf(net.has_default_backward_math(), net.default_backward_math())};
  const bool has_own =
      own.forward_type || own.backward_type || own.forward_math || own.backward_math;
  return has_own ? std::optional(own) : std::nullopt;
}

std::vector<fs::path> Nets() {
  std::vector<fs::path> nets;
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator(testing::SourcePath("models"))) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".prototxt") && name.find("solver") == std::string::npos &&
        name.find("labelmap") == std::string::npos && name != "model_info.prototxt") {
      nets.push_back(entry.path());
    }
  }
  std::sort(nets.begin(), nets.end());
  return nets;
}

std::vector<Phase> PhasesOf(const fs::path& net) {
  const std::string name = net.filename().string();
  // Layers in Python test DetectNet.
  const bool is_detectnet = net.parent_path().filename() == "kitti_detectnet";
  if (name.starts_with("train_val") && !is_detectnet) return {TRAIN, TEST};
  return {name.starts_with("train") ? TRAIN : TEST};
}

class PinnedPlansTest : public ::testing::TestWithParam<DeviceKind> {
 protected:
  using Summaries = std::map<std::string, PlanSummary>;  // by precision

  Summaries Summarize(const NetParameter& net, const std::shared_ptr<Device>& device) {
    if (const auto own = OwnPrecision(net))
      return {{"own", testing::SummarizePlan(net, *own, device)}};
    Summaries summaries;
    for (const auto& [name, precision] : Precisions())
      summaries[name] = testing::SummarizePlan(net, precision, device);
    return summaries;
  }

  // Plans in narrow types have at most one more step per input for its conversion, no useless
  // conversion, and half the memory for activations; for testing about the same memory, if rounds
  // of the batch take what fits the caches in each type.
  void ExpectNarrowPlansPay(const std::string& name, Phase phase, const Summaries& summaries) {
    const double most = phase == TRAIN ? 0.55 : 1.1;
    for (const auto& [precision, summary] : summaries)
      EXPECT_EQ(summary.unread, 0) << name << " " << precision;
    if (summaries.count("fp32") == 0) return;
    const PlanSummary& wide = summaries.at("fp32");
    for (const char* precision : {"bf16", "fp16", "mixed"}) {
      const PlanSummary& narrow = summaries.at(precision);
      EXPECT_LE(narrow.steps, wide.steps + narrow.inputs) << name << " " << precision;
      EXPECT_LE(static_cast<double>(narrow.arena_bytes),
                most * static_cast<double>(wide.arena_bytes))
          << name << " " << precision;
    }
  }
};

TEST_P(PinnedPlansTest, AreAsCommitted) {
  if (GetParam() == DeviceKind::kCpu && !cpu::HasWideVectors())
    GTEST_SKIP() << "plans are committed for processors with AVX-512";
  omp_set_num_threads(2);  // plans for testing split batches by the threads' caches
  std::shared_ptr<Device> device;
  try {
    device = GetParam() == DeviceKind::kCuda ? DescribeDevice(GetParam(), "H200")
                                             : MakeDevice(GetParam());
  } catch (const Error&) {
    device = MakeDevice(GetParam());  // the emulated one
  }
  const fs::path root = testing::SourcePath("");
  const fs::path pinned =
      root / "tests/passes/plans" / (GetParam() == DeviceKind::kCpu ? "cpu.txt" : "h200.txt");
  std::ostringstream text;
  for (const fs::path& file : Nets()) {
    for (const Phase phase : PhasesOf(file)) {
      const std::string name =
          fs::relative(file, root / "models").string() + " " + Phase_Name(phase);
      const Summaries summaries = Summarize(testing::WithInputs(file, phase), device);
      for (const auto& [precision, summary] : summaries)
        text << name << " " << precision << ": " << summary.ToString() << "\n";
      ExpectNarrowPlansPay(name, phase, summaries);
    }
  }
  if (std::getenv("CAFFE_UPDATE_PLANS") != nullptr) std::ofstream(pinned) << text.str();
  std::stringstream committed;
  committed << std::ifstream(pinned).rdbuf();
  std::istringstream lines(text.str());
  std::string line, expected;
  while (std::getline(committed, expected)) {
    ASSERT_TRUE(std::getline(lines, line)) << "the plan is gone of " << expected;
    EXPECT_EQ(line, expected);
  }
  EXPECT_FALSE(std::getline(lines, line)) << "no plan is committed of " << line;
}

INSTANTIATE_TEST_SUITE_P(Devices, PinnedPlansTest, ::testing::ValuesIn([] {
                           std::vector<DeviceKind> built;
                           for (const DeviceKind kind : {DeviceKind::kCpu, DeviceKind::kCuda}) {
                             if (IsDeviceBuilt(kind)) built.push_back(kind);
                           }
                           return built;
                         }()),
                         [](const auto& info) {
                           return info.param == DeviceKind::kCpu ? "Cpu" : "Cuda";
                         });

}  // namespace
}  // namespace caffe
