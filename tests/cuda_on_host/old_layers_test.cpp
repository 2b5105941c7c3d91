// Layers that were written for Caffe with GPU code, in nets on the emulated device.
#include "old_layers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ostream>
#include <string>
#include <vector>

#include "caffe/common.hpp"
#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "caffe/solver.hpp"
#include "caffe/solver_group.hpp"
#include "tests/support/temporary_folder.hpp"
#include "work_queue.hpp"

namespace caffe {
namespace {

using cuda_on_host::CallsOfOldLayers;
using cuda_on_host::OldLayerCalls;
using ::testing::HasSubstr;

// A convolution's output is channels-last, which Caffe's layers do not support. The first
// GpuSoftSign is in place, the second is not.
constexpr const char* kOldNet = R"pb(
  name: "old"
  layer {
    name: "data"
    type: "DummyData"
    top: "x"
    top: "target"
    dummy_data_param {
      shape { dim: 4 dim: 2 dim: 6 dim: 6 }
      shape { dim: 4 dim: 3 }
      data_filler { type: "gaussian" }
      data_filler { type: "constant" value: 0.4 }
    }
  }
  layer {
    name: "conv"
    type: "Convolution"
    bottom: "x"
    top: "conv"
    convolution_param {
      num_output: 8
      kernel_size: 3
      weight_filler { type: "xavier" }
    }
  }
  layer { name: "sign" type: "GpuSoftSign" bottom: "conv" top: "conv" }
  layer { name: "host" type: "HostScale" bottom: "conv" top: "host" }
  layer {
    name: "product"
    type: "GpuProduct"
    bottom: "host"
    top: "product"
    inner_product_param {
      num_output: 5
      weight_filler { type: "xavier" }
    }
  }
  layer { name: "stub" type: "StubbedScale" bottom: "product" top: "product" }
  layer { name: "sign2" type: "GpuSoftSign" bottom: "product" top: "sign2" }
  layer {
    name: "ip"
    type: "InnerProduct"
    bottom: "sign2"
    top: "ip"
    inner_product_param {
      num_output: 3
      weight_filler { type: "xavier" }
    }
  }
  layer { name: "loss" type: "GpuDistance" bottom: "ip" bottom: "target" top: "loss" }
)pb";

SolverParameter Parse(const std::string& options) {
  SolverParameter param;
  ParseTextProto("random_seed: 3 max_iter: 9 lr_policy: 'fixed' snapshot_after_train: false " +
                     options + " net_param { " + kOldNet + " }",
                 "solver", &param);
  return param;
}

std::vector<float> ParametersOf(Solver& solver) {
  std::vector<float> all;
  for (const Net::LearnableParam& learnable : solver.net().learnable_params()) {
    const float* values = learnable.blob->cpu_data<float>();
    all.insert(all.end(), values, values + learnable.blob->count());
  }
  return all;
}

// Nets made while this exists are on the emulated GPU.
struct GpuMode {
  GpuMode() { Caffe::set_mode(Caffe::GPU); }
  ~GpuMode() { Caffe::set_mode(Caffe::CPU); }
};

void ExpectNear(const std::vector<float>& found, const std::vector<float>& want, float tolerance) {
  ASSERT_EQ(found.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(found[i], want[i], tolerance) << i;
}

struct TrainingCase {
  const char* name;
  const char* options;
  float tolerance;

  friend std::ostream& operator<<(std::ostream& out, const TrainingCase& x) {
    return out << x.name;
  }
};

class CudaOldLayersTest : public ::testing::TestWithParam<TrainingCase> {};

// Each method of a layer is called only on the side on which the net runs.
TEST_P(CudaOldLayersTest, TrainAsOnTheCpu) {
  const SolverParameter param = Parse(GetParam().options);
  CallsOfOldLayers() = {};
  Solver on_cpu(param, {.keep_all = false});
  const std::vector<float> before = ParametersOf(on_cpu);
  on_cpu.Step(7);
  const OldLayerCalls cpu = CallsOfOldLayers();
  EXPECT_EQ(cpu.on_gpu, 0);
  EXPECT_GT(cpu.on_cpu, 0);

  const GpuMode mode;
  CallsOfOldLayers() = {};
  Solver on_gpu(param, {.keep_all = false});
  on_gpu.Step(7);
  EXPECT_EQ(CallsOfOldLayers().on_cpu, 0);
  EXPECT_EQ(CallsOfOldLayers().on_gpu, cpu.on_cpu);
  ExpectNear(ParametersOf(on_gpu), ParametersOf(on_cpu), GetParam().tolerance);
  // The parameters have changed, including the old layer's own weights (160 and 5 after the
  // convolution's).
  const std::vector<float> after = ParametersOf(on_gpu);
  EXPECT_NE(before.at(200), after.at(200));
}

INSTANTIATE_TEST_SUITE_P(
    Types, CudaOldLayersTest,
    ::testing::Values(
        TrainingCase{"Float", "type: 'SGD' base_lr: 0.05 momentum: 0.9", 1e-4f},
        TrainingCase{"Accumulated", "type: 'SGD' base_lr: 0.05 momentum: 0.9 iter_size: 2", 1e-4f},
        TrainingCase{"Adam", "type: 'Adam' base_lr: 0.002 momentum: 0.9", 1e-3f},
        TrainingCase{"Bfloat16", "type: 'SGD' base_lr: 0.05 momentum: 0.9 precision: BF16", 2e-2f},
        TrainingCase{"Float16", "type: 'SGD' base_lr: 0.05 momentum: 0.9 precision: FP16", 5e-3f},
        TrainingCase{"Double", "type: 'SGD' base_lr: 0.05 momentum: 0.9 precision: FP64", 1e-4f}),
    [](const auto& info) { return std::string(info.param.name); });

// User code runs between recorded steps and never inside them.
TEST(CudaOldLayersTest, ComeToTheSameBetweenRecordedSteps) {
  const GpuMode mode;
  const SolverParameter param = Parse("type: 'SGD' base_lr: 0.05 momentum: 0.9");
  const auto train = [&](bool replays) {
    if (!replays) ::setenv("CAFFE_DISABLE_PASSES", "capture-graph", 1);
    Solver solver(param, {.keep_all = false});
    ::unsetenv("CAFFE_DISABLE_PASSES");
    const auto before = cuda_on_host::LaunchesSoFar().graphs;
    CallsOfOldLayers() = {};
    solver.Step(7);
    EXPECT_EQ(cuda_on_host::LaunchesSoFar().graphs > before, replays);
    EXPECT_EQ(CallsOfOldLayers().on_gpu, 7 * 8);  // four layers, forward and backward
    return ParametersOf(solver);
  };
  EXPECT_EQ(train(true), train(false));
}

TEST(CudaOldLayersTest, GoOnFromASnapshot) {
  const GpuMode mode;
  const testing::TemporaryFolder folder;
  SolverParameter param = Parse("type: 'SGD' base_lr: 0.05 momentum: 0.9");
  param.set_snapshot_prefix(folder / "old");
  Solver whole(param, {.keep_all = false});
  whole.Step(3);
  const std::string state = whole.Snapshot();
  whole.Step(4);
  Solver resumed(param, {.keep_all = false});
  resumed.Restore(state);
  resumed.Step(4);
  EXPECT_EQ(ParametersOf(resumed), ParametersOf(whole));
}

// The two share the emulated device.
TEST(CudaOldLayersTest, EndOnSeveralGpusWhereSeveralWorkersDo) {
  const SolverParameter param = Parse("type: 'SGD' base_lr: 0.05 momentum: 0.9");
  SolverGroup workers(param, {.keep_all = false}, 2);
  workers.Step(5);
  const GpuMode mode;
  SolverGroup gpus(param, {.keep_all = false}, std::vector<int>{0, 1});
  gpus.Step(5);
  for (int gpu = 0; gpu < 2; ++gpu)
    ExpectNear(ParametersOf(gpus.solver(gpu)), ParametersOf(workers.solver(1)), 1e-4f);
}

TEST(CudaOldLayersTest, MayKnowTheirShapeInForward) {
  const GpuMode mode;
  NetParameter param;
  ParseTextProto(R"pb(
                   layer {
                     name: "x"
                     type: "Input"
                     top: "x"
                     input_param { shape { dim: 4 dim: 2 } }
                   }
                   layer { name: "y" type: "GpuPositive" bottom: "x" top: "y" }
                   layer { name: "z" type: "HostScale" bottom: "y" top: "z" }
                 )pb",
                 "net", &param);
  Net net(param);
  const std::vector<float> values = {1, 2, -3, 4, 5, 6, -7, 8};
  for (int pass = 0; pass < 2; ++pass) {
    std::copy(values.begin(), values.end(), net.blob_by_name("x")->mutable_cpu_data<float>());
    net.Forward();
    const Blob& z = *net.blob_by_name("z");
    ASSERT_EQ(z.shape(), Shape({2, 2}));
    EXPECT_EQ(std::vector<float>(z.cpu_data<float>(), z.cpu_data<float>() + 4),
              (std::vector<float>{1.5, 3, 7.5, 9}));
  }
}

TEST(CudaOldLayersTest, HaveErrorsThatNameTheMethod) {
  const GpuMode mode;
  NetParameter param;
  ParseTextProto(R"pb(
                   layer {
                     name: "x"
                     type: "Input"
                     top: "x"
                     input_param { shape { dim: 4 } }
                   }
                   layer { name: "y" type: "GpuFaulty" bottom: "x" top: "y" }
                 )pb",
                 "net", &param);
  Net net(param);
  try {
    net.Forward();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("layer 'y' (GpuFaulty): in Forward_gpu: nothing works"));
  }
}

// Sizes of one launch, of less than a vector, and of many blocks.
TEST(CudaOldLayersTest, HaveTheArithmeticOfTheProcessor) {
  for (const int count : {43, 64, 5000})
    EXPECT_LT(cuda_on_host::LargestDifferenceOfGpuMath(count), 2e-6) << count;
}

}  // namespace
}  // namespace caffe
