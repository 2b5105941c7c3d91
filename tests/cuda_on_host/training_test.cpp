// Whole nets on the emulated device: what the executor, the data layers and the solver do for a
// device whose memory the host cannot look into.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "caffe/common.hpp"
#include "caffe/error.hpp"
#include "caffe/graph/weight_copies.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "caffe/plan/executor.hpp"
#include "caffe/solver.hpp"
#include "caffe/solver_group.hpp"

namespace caffe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kNet = R"pb(
  name: "small"
  layer {
    name: "data"
    type: "DummyData"
    top: "data"
    top: "label"
    dummy_data_param {
      shape { dim: 6 dim: 3 dim: 8 dim: 8 }
      shape { dim: 6 }
      data_filler { type: "gaussian" }
      data_filler { type: "constant" value: 2 }
    }
  }
  layer {
    name: "conv"
    type: "Convolution"
    bottom: "data"
    top: "conv"
    convolution_param {
      num_output: 5
      kernel_size: 3
      bias_term: false  # its gradient would be rounding errors, which some rules blow up
      weight_filler { type: "xavier" }
    }
  }
  layer { name: "bn" type: "BatchNorm" bottom: "conv" top: "bn" }
  layer {
    name: "scale"
    type: "Scale"
    bottom: "bn"
    top: "bn"
    scale_param { bias_term: true }
  }
  layer { name: "relu" type: "ReLU" bottom: "bn" top: "bn" }
  layer {
    name: "pool"
    type: "Pooling"
    bottom: "bn"
    top: "pool"
    pooling_param { pool: MAX kernel_size: 2 stride: 2 }
  }
  layer { name: "drop" type: "Dropout" bottom: "pool" top: "drop" }
  layer {
    name: "ip"
    type: "InnerProduct"
    bottom: "drop"
    top: "ip"
    inner_product_param {
      num_output: 4
      weight_filler { type: "xavier" }
    }
  }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)pb";

struct Trained {
  std::vector<float> parameters;
  float smoothed_loss = 0;
};

SolverParameter Parse(const std::string& options) {
  SolverParameter param;
  ParseTextProto(
      "lr_policy: 'fixed' weight_decay: 0.01 random_seed: 3 display: 0 "
      "max_iter: 7 snapshot_after_train: false " +
          options + " net_param { " + kNet + " }",
      "solver", &param);
  return param;
}

Trained StateOf(Solver& solver) {
  Trained trained{.smoothed_loss = solver.smoothed_loss()};
  for (const Net::LearnableParam& learnable : solver.net().learnable_params()) {
    const float* values = learnable.blob->cpu_data<float>();
    trained.parameters.insert(trained.parameters.end(), values, values + learnable.blob->count());
  }
  return trained;
}

Trained Train(Caffe::Brew mode, const std::string& options) {
  Caffe::set_mode(mode);
  Solver solver(Parse(options), {.keep_all = false});
  solver.Step(7);
  const Trained trained = StateOf(solver);
  Caffe::set_mode(Caffe::CPU);
  return trained;
}

class CudaTrainingTest : public ::testing::TestWithParam<const char*> {};

TEST_P(CudaTrainingTest, EndsWhereTheCpuDoes) {
  const Trained cpu = Train(Caffe::CPU, GetParam());
  const Trained gpu = Train(Caffe::GPU, GetParam());
  ASSERT_EQ(gpu.parameters.size(), cpu.parameters.size());
  for (size_t i = 0; i < cpu.parameters.size(); ++i)
    ASSERT_NEAR(gpu.parameters[i], cpu.parameters[i], 2e-3) << i;
  EXPECT_NEAR(gpu.smoothed_loss, cpu.smoothed_loss, 1e-2);
}

INSTANTIATE_TEST_SUITE_P(
    Solvers, CudaTrainingTest,
    ::testing::Values("type: 'SGD' base_lr: 0.05 momentum: 0.9 average_loss: 4",
                      "type: 'Nesterov' base_lr: 0.05 momentum: 0.9 iter_size: 2",
                      "type: 'Adam' base_lr: 0.002 momentum: 0.9",
                      "type: 'LAMB' base_lr: 0.01 momentum: 0.9",
                      "type: 'SGD' base_lr: 0.05 momentum: 0.9 clip_gradients: 0.5",
                      "type: 'SGD' base_lr: 0.05 momentum: 0.9 larc: true larc_policy: 'clip' "
                      "larc_eta: 0.01 larc_turbo: true",
                      "type: 'LAMB' base_lr: 0.01 momentum: 0.9 clip_gradients: 0.5 iter_size: 2"));

// The host reads a loss one iteration late, but none is lost or counted twice.
TEST(CudaTrainingTest, SmoothedLossIsThatOfTheLastIterations) {
  const std::string options = "type: 'SGD' base_lr: 0 average_loss: 1";
  EXPECT_NEAR(Train(Caffe::GPU, options).smoothed_loss, Train(Caffe::CPU, options).smoothed_loss,
              1e-4);
}

TEST(CudaTrainingTest, ScaledGradientsOf16BitNetsTrain) {
  const std::string options = "type: 'SGD' base_lr: 0.05 momentum: 0.9 precision: FP16";
  const Trained cpu = Train(Caffe::CPU, options), gpu = Train(Caffe::GPU, options);
  for (size_t i = 0; i < cpu.parameters.size(); ++i)
    ASSERT_NEAR(gpu.parameters[i], cpu.parameters[i], 0.05) << i;
}

TEST(CudaTrainingTest, ASkippedStepLeavesNothingBehind) {
  Caffe::set_mode(Caffe::GPU);
  SolverParameter param = Parse("type: 'SGD' base_lr: 0.05 momentum: 0.9 precision: FP16");
  param.mutable_net_param()->set_global_grad_scale(1e9);
  param.mutable_net_param()->set_global_grad_scale_adaptive(true);
  Solver solver(param, {.keep_all = false});
  Caffe::set_mode(Caffe::CPU);
  solver.Step(1);  // with a scale of 1
  const Trained before = StateOf(solver);
  ::testing::internal::CaptureStderr();
  solver.Step(1);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("Iteration 1: gradients are not finite at gs = "));
  EXPECT_EQ(StateOf(solver).parameters, before.parameters);
  ::testing::internal::CaptureStderr();
  solver.Step(3);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), Not(HasSubstr("not finite")));
  EXPECT_NE(StateOf(solver).parameters, before.parameters);
}

// How often steps ran that make copies of weights in another type or layout.
int64_t CopiesMade(Net& net) {
  std::set<const Node*> copies;
  for (const WeightCopy& copy : WeightCopies(net.graph())) copies.insert(copy.node);
  EXPECT_FALSE(copies.empty());
  int64_t runs = 0;
  for (const StepTime& step : net.executor().step_times())
    runs += copies.count(step.node) > 0 ? step.runs : 0;
  return runs;
}

TEST(CudaTrainingTest, TheUpdateWritesCopiesOfWeights) {
  for (const char* rule : {"type: 'SGD' momentum: 0.9", "type: 'LAMB' momentum: 0.9"}) {
    Caffe::set_mode(Caffe::GPU);
    Solver solver(Parse(StrCat("base_lr: 0.05 precision: BF16 ", rule)), {.keep_all = false});
    Caffe::set_mode(Caffe::CPU);
    Net& net = solver.net();
    net.executor().set_profiling(true);
    solver.Step(1);
    const int64_t first = CopiesMade(net);
    EXPECT_GT(first, 0);
    solver.Step(3);
    EXPECT_EQ(CopiesMade(net), first);
    // What it has written is what the weights are.
    float loss = 0, anew = 0;
    net.set_pass(100);
    net.Forward(&loss);
    for (const Net::LearnableParam& learnable : net.learnable_params())
      learnable.blob->mutable_cpu_data<float>();
    net.set_pass(100);
    net.Forward(&anew);
    EXPECT_GT(CopiesMade(net), first);
    EXPECT_EQ(anew, loss);
  }
}

TEST(CudaTrainingTest, WeightsFromOutsideAreConvertedAnew) {
  Caffe::set_mode(Caffe::GPU);
  Solver solver(Parse("type: 'SGD' base_lr: 0.05 precision: BF16"), {.keep_all = false});
  Caffe::set_mode(Caffe::CPU);
  solver.Step(2);
  for (const auto& blob : solver.net().layer_params("ip"))
    std::fill_n(blob->mutable_cpu_data<float>(), blob->count(), 0.0f);
  float loss = 0;
  solver.net().Forward(&loss);
  EXPECT_NEAR(loss, std::log(4.0f), 1e-2);
}

// The host hears of clipped and skipped steps while the next one runs, and of none twice.
TEST(CudaTrainingTest, EachStepIsReportedOnce) {
  Caffe::set_mode(Caffe::GPU);
  Solver solver(Parse("type: 'SGD' base_lr: 0.05 clip_gradients: 0.001"), {.keep_all = false});
  Caffe::set_mode(Caffe::CPU);
  ::testing::internal::CaptureStderr();
  solver.Step(5);
  const std::string log = ::testing::internal::GetCapturedStderr();
  int reports = 0;
  for (size_t at = log.find("Gradient clipping"); at != std::string::npos;
       at = log.find("Gradient clipping", at + 1)) {
    ++reports;
  }
  EXPECT_EQ(reports, 5);
}

// The two share the emulated device.
TEST(CudaTrainingTest, SeveralGpusEndWhereSeveralWorkersDo) {
  const SolverParameter param = Parse("type: 'SGD' base_lr: 0.05 momentum: 0.9 iter_size: 2");
  SolverGroup workers(param, {.keep_all = false}, 2);
  workers.Step(7);
  Caffe::set_mode(Caffe::GPU);
  SolverGroup gpus(param, {.keep_all = false}, std::vector<int>{0, 1});
  gpus.Step(7);
  Caffe::set_mode(Caffe::CPU);
  const Trained want = StateOf(workers.solver(1));
  for (int gpu = 0; gpu < 2; ++gpu) {
    const Trained found = StateOf(gpus.solver(gpu));
    ASSERT_EQ(found.parameters.size(), want.parameters.size());
    for (size_t i = 0; i < want.parameters.size(); ++i)
      ASSERT_NEAR(found.parameters[i], want.parameters[i], 2e-3) << i;
    EXPECT_NEAR(found.smoothed_loss, want.smoothed_loss, 1e-2);
  }
}

}  // namespace
}  // namespace caffe
