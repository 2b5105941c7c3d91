// Whole nets on a GPU: tests the executor, the data layers and the solver on a device whose memory
// the host cannot access.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>

#include "caffe/common.hpp"
#include "caffe/device/device.hpp"
#include "caffe/error.hpp"
#include "caffe/graph/weight_copies.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/plan/executor.hpp"
#include "caffe/plan_report.hpp"
#include "caffe/solver.hpp"
#include "caffe/solver_group.hpp"
#include "tests/gpu_training/small_net.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using ::testing::HasSubstr;
using testing::kSmallNet;
using ::testing::Not;
using testing::SmallSolver;

struct Trained {
  std::vector<float> parameters;
  float smoothed_loss = 0;
  bool operator==(const Trained&) const = default;
};

// The number of items that reach the loss differs from batch to batch.
constexpr const char* kFilteredNet = R"pb(
  name: "filtered"
  strict_fp32: true
  deterministic: true
  layer {
    name: "data"
    type: "DummyData"
    top: "x"
    top: "t"
    top: "s"
    dummy_data_param {
      shape { dim: 8 dim: 3 }
      shape { dim: 8 dim: 2 }
      shape { dim: 8 }
      data_filler { type: "gaussian" }
      data_filler { type: "gaussian" }
      data_filler { type: "gaussian" }
    }
  }
  layer {
    name: "first"
    type: "InnerProduct"
    bottom: "x"
    top: "first"
    inner_product_param {
      num_output: 4
      weight_filler { type: "xavier" }
    }
  }
  layer { name: "pick" type: "Threshold" bottom: "s" top: "pick" }
  layer {
    name: "filter"
    type: "Filter"
    bottom: "first"
    bottom: "t"
    bottom: "pick"
    top: "some"
    top: "some_t"
  }
  layer {
    name: "ip"
    type: "InnerProduct"
    bottom: "some"
    top: "y"
    inner_product_param {
      num_output: 2
      weight_filler { type: "xavier" }
    }
  }
  layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "some_t" top: "loss" }
)pb";

Trained StateOf(Solver& solver) {
  Trained trained{.smoothed_loss = solver.smoothed_loss()};
  for (const Net::LearnableParam& learnable : solver.net().learnable_params()) {
    const float* values = learnable.blob->cpu_data<float>();
    trained.parameters.insert(trained.parameters.end(), values, values + learnable.blob->count());
  }
  return trained;
}

Trained Train(Caffe::Brew mode, const std::string& options, const char* net = kSmallNet) {
  Caffe::set_mode(mode);
  Solver solver(SmallSolver(options, net), {.keep_all = false});
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

// The GPU's state after `train`, with or without recorded steps.
Trained TrainOnGpu(bool replays, const SolverParameter& param,
                   const std::function<void(Solver&)>& train) {
  if (!replays) ::setenv("CAFFE_DISABLE_PASSES", "capture-graph", 1);
  Caffe::set_mode(Caffe::GPU);
  Solver solver(param, {.keep_all = false});
  Caffe::set_mode(Caffe::CPU);
  ::unsetenv("CAFFE_DISABLE_PASSES");
  train(solver);
  EXPECT_EQ(CapturesOf(solver.net()).stretches > 0, replays);
  Trained trained = StateOf(solver);
  for (const std::shared_ptr<Blob>& state : solver.history()) {
    const float* values = state->cpu_data<float>();
    trained.parameters.insert(trained.parameters.end(), values, values + state->count());
  }
  return trained;
}

void ExpectReplayedAsStepByStep(const SolverParameter& param,
                                const std::function<void(Solver&)>& train) {
  const Trained replayed = TrainOnGpu(true, param, train);
  for (const float value : replayed.parameters) ASSERT_TRUE(std::isfinite(value));
  EXPECT_TRUE(replayed == TrainOnGpu(false, param, train));
}

class ReplayedCudaTrainingTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ReplayedCudaTrainingTest, ComesToTheSameAsStepByStep) {
  ExpectReplayedAsStepByStep(SmallSolver(GetParam()), [](Solver& solver) { solver.Step(7); });
}

// Learning rates differ from step to step, so that replaying old numbers would be noticed.
INSTANTIATE_TEST_SUITE_P(
    Solvers, ReplayedCudaTrainingTest,
    ::testing::Values(
        "type: 'SGD' base_lr: 0.05 momentum: 0.9 lr_policy: 'inv' gamma: 0.1 power: 0.75",
        "type: 'SGD' base_lr: 0.05 lr_policy: 'step' gamma: 0.1 stepsize: 2 iter_size: 2",
        "type: 'SGD' base_lr: 0.05 lr_policy: 'exp' gamma: 0.9 display: 3 average_loss: 5",
        "type: 'Adam' base_lr: 0.002 momentum: 0.9 lr_policy: 'exp' gamma: 0.9",
        "type: 'LAMB' base_lr: 0.01 momentum: 0.9 precision: BF16",
        "type: 'LAMB' base_lr: 0.01 momentum: 0.9 clip_gradients: 0.5 iter_size: 2",
        "type: 'AdaSecant' base_lr: 0.01 lr_policy: 'exp' gamma: 0.9",
        "type: 'SGD' base_lr: 0.05 momentum: 0.9 precision: BF16 lr_policy: 'exp' gamma: 0.9",
        "type: 'SGD' base_lr: 0.05 momentum: 0.9 precision: FP16 clip_gradients: 0.5",
        "type: 'SGD' base_lr: 0.05 momentum: 0.9 larc: true larc_policy: 'clip' larc_eta: 0.01 "
        "larc_turbo: true"));

TEST(ReplayedCudaTrainingTest, SkipsStepsAsStepByStep) {
  SolverParameter param = SmallSolver("type: 'SGD' base_lr: 0.05 momentum: 0.9 precision: FP16");
  param.mutable_net_param()->set_global_grad_scale(1e9);
  param.mutable_net_param()->set_global_grad_scale_adaptive(true);
  ::testing::internal::CaptureStderr();
  ExpectReplayedAsStepByStep(param, [](Solver& solver) { solver.Step(30); });
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("step skipped"));
}

TEST(ReplayedCudaTrainingTest, GoesOnFromASnapshot) {
  const testing::TemporaryFolder folder;
  SolverParameter param = SmallSolver(
      "type: 'Adam' base_lr: 0.01 momentum: 0.9 lr_policy: 'exp' gamma: 0.7 precision: BF16");
  param.set_snapshot_prefix(folder / "replayed");
  ExpectReplayedAsStepByStep(param, [](Solver& solver) {
    solver.Step(3);
    const std::string state = solver.Snapshot();
    solver.Step(4);
    solver.Restore(state);
    solver.Step(4);
  });
}

TEST(ReplayedCudaTrainingTest, GoesOnWithWeightsFromOutside) {
  for (const char* precision : {"FP32", "BF16"}) {
    const SolverParameter param =
        SmallSolver(StrCat("type: 'SGD' base_lr: 0.05 momentum: 0.9 precision: ", precision));
    ExpectReplayedAsStepByStep(param, [](Solver& solver) {
      solver.Step(3);
      for (const auto& blob : solver.net().layer_params("ip"))
        std::fill_n(blob->mutable_cpu_data<float>(), blob->count(), 0.125f);
      solver.Step(3);
      solver.ApplyUpdate();
      solver.Step(3);
    });
  }
}

// Recorded work keeps its addresses.
TEST(ReplayedCudaTrainingTest, FollowsWeightsAndHistoryToOtherMemory) {
  const SolverParameter param = SmallSolver("type: 'SGD' base_lr: 0.05 momentum: 0.9");
  ExpectReplayedAsStepByStep(param, [&](Solver& solver) {
    solver.Step(3);
    Caffe::set_mode(Caffe::GPU);
    const Net other(param.net_param(), {.keep_all = false, .seed = 8});
    Caffe::set_mode(Caffe::CPU);
    solver.net().ShareTrainedLayersWith(other);
    solver.Step(3);
    Blob& history = *solver.history().front();
    Blob moved(solver.net().graph().options.device, history.shape(), DType::kFloat);
    history.ShareData(moved);
    solver.Step(4);
  });
}

TEST(CudaTrainingTest, BatchesOfOtherSizesEndWhereTheCpuDoes) {
  const std::string options = "type: 'SGD' base_lr: 0.05 momentum: 0.9";
  const Trained cpu = Train(Caffe::CPU, options, kFilteredNet);
  const Trained gpu = Train(Caffe::GPU, options, kFilteredNet);
  ASSERT_EQ(gpu.parameters.size(), cpu.parameters.size());
  for (size_t i = 0; i < cpu.parameters.size(); ++i)
    ASSERT_NEAR(gpu.parameters[i], cpu.parameters[i], 1e-4) << i;
  EXPECT_NEAR(gpu.smoothed_loss, cpu.smoothed_loss, 1e-3);
}

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
  SolverParameter param = SmallSolver("type: 'SGD' base_lr: 0.05 momentum: 0.9 precision: FP16");
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

// This holds even though reports and losses lag.
TEST(CudaTrainingTest, HundredSkippedStepsNameTheLayerOfAnInfiniteGradient) {
  constexpr char kRoot[] = R"pb(
    global_grad_scale: 2
    global_grad_scale_adaptive: true
    layer {
      name: "x"
      type: "DummyData"
      top: "x"
      top: "t"
      dummy_data_param {
        shape { dim: 4 dim: 3 }
        shape { dim: 4 dim: 2 }
        data_filler { type: "constant" value: 1 }
        data_filler { type: "constant" value: 1 }
      }
    }
    layer {
      name: "ip"
      type: "InnerProduct"
      bottom: "x"
      top: "y"
      inner_product_param {
        num_output: 2
        weight_filler { type: "constant" }
      }
    }
    layer {
      name: "root"
      type: "Power"
      bottom: "y"
      top: "r"
      power_param { power: 0.5 }
    }
    layer { name: "loss" type: "EuclideanLoss" bottom: "r" bottom: "t" top: "loss" }
  )pb";
  for (const bool keep_all : {false, true}) {
    Caffe::set_mode(Caffe::GPU);
    Solver solver(SmallSolver("base_lr: 0.01 precision: FP16", kRoot), {.keep_all = keep_all});
    Caffe::set_mode(Caffe::CPU);
    ::testing::internal::CaptureStderr();
    EXPECT_THAT(testing::ErrorText<Error>([&] { solver.Step(200); }),
                HasSubstr("layer 'root' (Power) is the first whose gradient of blob 'y'"));
    ::testing::internal::GetCapturedStderr();
  }
}

// The host learns the loss of the last iteration after its update.
TEST(CudaTrainingTest, AnEndWithoutFiniteWeightsIsAnError) {
  const testing::TemporaryFolder folder;
  Caffe::set_mode(Caffe::GPU);
  // Decay makes the weights infinite in the first update.
  SolverParameter param = SmallSolver("type: 'SGD' base_lr: 1e38");
  param.set_weight_decay(1e38f);
  param.set_max_iter(1);
  param.set_snapshot_after_train(true);
  param.set_snapshot_prefix(folder.path("run"));
  Solver solver(param, {.keep_all = false});
  Caffe::set_mode(Caffe::CPU);
  EXPECT_THAT(testing::ErrorText<Error>([&] { solver.Solve(); }),
              HasSubstr("no snapshot of iteration 1 is written: parameter "));
  for (const char* file : {"run_iter_1.caffemodel", "run_iter_1.solverstate"})
    EXPECT_FALSE(std::filesystem::exists(folder.path(file))) << file;
}

// How often steps ran that copy weights to another type or layout.
int64_t CopiesMade(Net& net) {
  const Executor& executor = TrainingNet(net).executor();
  const size_t copies = executor.program().copies.size();
  EXPECT_GT(copies, 0u);
  int64_t runs = 0;
  for (size_t i = 0; i < copies; ++i) runs += executor.profiler().times()[i].runs;
  return runs;
}

TEST(CudaTrainingTest, TheUpdateWritesCopiesOfWeights) {
  for (const char* rule : {"type: 'SGD' momentum: 0.9", "type: 'LAMB' momentum: 0.9"}) {
    Caffe::set_mode(Caffe::GPU);
    Solver solver(SmallSolver(StrCat("base_lr: 0.05 precision: BF16 ", rule)), {.keep_all = false});
    Caffe::set_mode(Caffe::CPU);
    Net& net = solver.net();
    TrainingNet(net).executor().profiler().set_on(true);
    solver.Step(1);
    const int64_t first = CopiesMade(net);
    EXPECT_GT(first, 0);
    solver.Step(3);
    EXPECT_EQ(CopiesMade(net), first);
    // The update's copies equal the weights.
    float loss = 0, anew = 0;
    loss = TrainingNet(net).Forward(100);
    for (const Net::LearnableParam& learnable : net.learnable_params())
      learnable.blob->mutable_cpu_data<float>();
    anew = TrainingNet(net).Forward(100);
    EXPECT_GT(CopiesMade(net), first);
    EXPECT_EQ(anew, loss);
  }
}

TEST(CudaTrainingTest, WeightsFromOutsideAreConvertedAnew) {
  Caffe::set_mode(Caffe::GPU);
  Solver solver(SmallSolver("type: 'SGD' base_lr: 0.05 precision: BF16"), {.keep_all = false});
  Caffe::set_mode(Caffe::CPU);
  solver.Step(2);
  for (const auto& blob : solver.net().layer_params("ip"))
    std::fill_n(blob->mutable_cpu_data<float>(), blob->count(), 0.0f);
  float loss = 0;
  solver.net().Forward(&loss);
  EXPECT_NEAR(loss, std::log(4.0f), 1e-2);
}

// The update would have written the copies of these weights, but skips.
TEST(CudaTrainingTest, WeightsFromOutsideBeforeASkippedStepAreConvertedAnew) {
  SolverParameter param = SmallSolver("type: 'SGD' base_lr: 0.05 precision: FP16");
  param.mutable_net_param()->set_global_grad_scale(1e9);
  Caffe::set_mode(Caffe::GPU);
  Solver solver(param, {.keep_all = false});
  Caffe::set_mode(Caffe::CPU);
  solver.Step(1);
  solver.AddCallbacks({.on_gradients_ready = [&] {
    for (const auto& blob : solver.net().layer_params("ip"))
      std::fill_n(blob->mutable_cpu_data<float>(), blob->count(), 0.0f);
  }});
  ::testing::internal::CaptureStderr();
  solver.Step(1);
  ASSERT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("step skipped"));
  float loss = 0;
  solver.net().Forward(&loss);
  EXPECT_NEAR(loss, std::log(4.0f), 1e-2);
}

// The host learns of clipped and skipped steps while the next one runs, and of none twice.
TEST(CudaTrainingTest, EachStepIsReportedOnce) {
  Caffe::set_mode(Caffe::GPU);
  Solver solver(SmallSolver("type: 'SGD' base_lr: 0.05 clip_gradients: 0.001"),
                {.keep_all = false});
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

// SyncBN's sums go through the host.
TEST(CudaTrainingTest, SeveralGpusEndWhereSeveralWorkersDo) {
  if (NumDevices(DeviceKind::kCuda) < 2) GTEST_SKIP() << "one GPU";
  for (const std::string norm : {"BatchNorm", "SyncBN"}) {
    SCOPED_TRACE(norm);
    std::string net = kSmallNet;
    net.replace(net.find("BatchNorm"), std::strlen("BatchNorm"), norm);
    const SolverParameter param =
        SmallSolver("type: 'SGD' base_lr: 0.05 momentum: 0.9 iter_size: 2", net.c_str());
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
}

}  // namespace
}  // namespace caffe
