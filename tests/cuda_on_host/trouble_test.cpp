// Devices that run out of memory or are lost, at each place where that may happen: the caller gets
// the error, and nothing else ends or hangs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/common.hpp"
#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/device/device_fault.hpp"
#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/plan/executor.hpp"
#include "caffe/solver.hpp"
#include "caffe/solver_group.hpp"
#include "caffe/training_observer.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"
#include "work_queue.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using testing::ErrorText;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int kSteps = 4;

// Images from files, tests during training, momentum, and steps that are recorded.
constexpr const char* kSolver = R"pb(
  base_lr: 0.01
  momentum: 0.9
  lr_policy: "exp"
  gamma: 0.9
  random_seed: 3
  max_iter: 9
  snapshot_after_train: false
  test_iter: 1
  test_interval: 3
  net_param {
    layer {
      name: "data"
      type: "ImageData"
      top: "data"
      top: "label"
      transform_param { scale: 0.01 use_gpu_transform: true }
      image_data_param { batch_size: 3 }
    }
    layer {
      name: "conv"
      type: "Convolution"
      bottom: "data"
      top: "conv"
      convolution_param {
        num_output: 4
        kernel_size: 3
        weight_filler { type: "xavier" }
      }
    }
    layer { name: "bn" type: "BatchNorm" bottom: "conv" top: "bn" }
    layer { name: "relu" type: "ReLU" bottom: "bn" top: "bn" }
    layer {
      name: "ip"
      type: "InnerProduct"
      bottom: "bn"
      top: "ip"
      inner_product_param {
        num_output: 5
        weight_filler { type: "xavier" }
      }
    }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
  }
)pb";

class CudaTroubleTest : public ::testing::Test {
 protected:
  CudaTroubleTest() {
    std::ofstream list(folder_.path("list.txt"));
    for (int i = 0; i < 5; ++i) {
      const data::Image image{{3, 8, 8}, std::vector<uint8_t>(3 * 8 * 8, uint8_t(40 * i))};
      std::ofstream(folder_.path(StrCat(i, ".png"))) << data::EncodeImage(image, "png");
      list << i << ".png " << i << "\n";
    }
    Caffe::set_mode(Caffe::GPU);
  }
  ~CudaTroubleTest() override {
    cuda_on_host::EndTrouble();
    Caffe::SetDevice(0);
    Caffe::set_mode(Caffe::CPU);
  }

  SolverParameter Definition() const {
    SolverParameter param;
    ParseTextProto(kSolver, "solver", &param);
    ImageDataParameter& images =
        *param.mutable_net_param()->mutable_layer(0)->mutable_image_data_param();
    images.set_source(folder_.path("list.txt"));
    images.set_root_folder(folder_.path(""));
    return param;
  }

  static std::vector<float> WeightsOf(Solver& solver) {
    std::vector<float> weights;
    for (const Net::LearnableParam& param : solver.net().learnable_params()) {
      const float* values = param.blob->cpu_data<float>();
      weights.insert(weights.end(), values, values + param.blob->count());
    }
    return weights;
  }

  std::vector<float> TrainOn(int gpu) const {
    Caffe::SetDevice(gpu);
    Solver solver(Definition(), {.keep_all = false});
    solver.Step(kSteps);
    return WeightsOf(solver);
  }

  std::vector<float> TrainOnTwo() const {
    SolverGroup group(Definition(), {.keep_all = false}, std::vector<int>{0, 1});
    group.Step(kSteps);
    return WeightsOf(group.solver(0));
  }

  // Makes trouble at later and later places, until none occurs. Each run ends with an error that
  // `is_told` accepts, or with the result of a run without trouble.
  static void Sweep(const std::function<void(int64_t place)>& make_trouble,
                    const std::function<std::vector<float>()>& train,
                    const std::function<void(const DeviceError&)>& is_told) {
    const std::vector<float> want = train();
    int ended = 0;
    for (int64_t place = 0;; place += 1 + place / 8) {
      SCOPED_TRACE(place);
      make_trouble(place);
      std::optional<std::vector<float>> found;
      try {
        found = train();
      } catch (const DeviceError& error) {
        is_told(error);
        ++ended;
      }
      const bool has_come = cuda_on_host::EndTrouble();
      if (found) {
        EXPECT_EQ(*found, want);
      }
      if (::testing::Test::HasFailure() || !has_come) break;
    }
    EXPECT_GT(ended, 5);
    EXPECT_EQ(train(), want) << "when the trouble is over";
  }

  static void IsOutOfMemory(const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("out of memory"));
  }
  // The error has no prefix about where it was noticed.
  static void IsLost(const DeviceError& error) {
    EXPECT_NE(dynamic_cast<const DeviceFault*>(&error), nullptr) << error.what();
    EXPECT_THAT(error.what(), StartsWith("cuda on the host: device 0 is lost"));
  }

  const testing::TemporaryFolder folder_;
};

TEST_F(CudaTroubleTest, ANetThatDoesNotFitIsRefused) {
  cuda_on_host::LeaveFree(1000);
  EXPECT_THAT(ErrorText<DeviceError>([&] { TrainOn(0); }),
              AllOf(HasSubstr("out of memory"), HasSubstr("are free"), HasSubstr("batch_size")));
}

// CUDA's libraries allocate after the net, so the net cannot use all memory that is free now. The
// amount is an estimate, so the net is tried.
TEST_F(CudaTroubleTest, ANetThatLeavesNoRoomForLibrariesIsTriedWithAWarning) {
  const auto log_of = [](size_t mebibytes, const auto& train) {
    cuda_on_host::LeaveFree(mebibytes << 20);
    ::testing::internal::CaptureStderr();
    train();
    return ::testing::internal::GetCapturedStderr();
  };
  const auto one = [&] { TrainOn(0); };
  const auto two = [&] { TrainOnTwo(); };
  EXPECT_THAT(log_of(500, one), AllOf(HasSubstr("memory may run out"), HasSubstr("batch_size"),
                                      HasSubstr("libraries about 512.0 MiB")));
  EXPECT_THAT(log_of(1500, two), HasSubstr("libraries about 1.50 GiB"));
  EXPECT_THAT(log_of(1500, one), Not(HasSubstr("memory may run out")));
  EXPECT_THAT(log_of(1600, two), Not(HasSubstr("memory may run out")));
}

// A data layer's batches are allocated with the first batch. If they were allocated with the plan
// and there was no memory, the error could not say which batch size fits.
TEST_F(CudaTroubleTest, ANetIsRefusedBeforeItTakesMemory) {
  NetParameter param;
  ParseTextProto(R"pb(
                   layer {
                     name: "data"
                     type: "DummyData"
                     top: "data"
                     dummy_data_param {
                       shape { dim: 6 dim: 8 dim: 8 dim: 8 }
                       data_filler { type: "gaussian" }
                     }
                   }
                   layer {
                     name: "conv"
                     type: "Convolution"
                     bottom: "data"
                     top: "conv"
                     convolution_param { num_output: 16 kernel_size: 3 }
                   }
                 )pb",
                 "net", &param);
  param.mutable_state()->set_phase(TRAIN);
  const auto make = [&] { Net(param, {.keep_all = false, .seed = 3}); };
  make();
  cuda_on_host::LeaveFree(1000);
  cuda_on_host::LeaveMemoryFor(0);
  EXPECT_THAT(ErrorText<DeviceError>(make), HasSubstr("batch_size"));
  EXPECT_FALSE(cuda_on_host::EndTrouble()) << "it has asked for memory";
}

TEST_F(CudaTroubleTest, WithoutMemoryTrainingEndsWithTheReason) {
  Sweep(
      cuda_on_host::LeaveMemoryFor, [&] { return TrainOn(0); }, IsOutOfMemory);
}

TEST_F(CudaTroubleTest, WithoutMemorySeveralGpusEndWithTheReason) {
  Sweep(
      cuda_on_host::LeaveMemoryFor, [&] { return TrainOnTwo(); }, IsOutOfMemory);
}

TEST_F(CudaTroubleTest, ALostDeviceEndsTraining) {
  const std::vector<float> want = TrainOn(1);
  Sweep([](int64_t calls) { cuda_on_host::LoseDeviceAfter(0, calls); }, [&] { return TrainOn(0); },
        [&](const DeviceError& error) {
          IsLost(error);
          EXPECT_EQ(TrainOn(1), want) << "another one serves";
        });
}

// This is not a failure of the snapshot, after which training would continue.
TEST_F(CudaTroubleTest, ALostDeviceEndsTrainingAtASnapshot) {
  SolverParameter param = Definition();
  param.set_snapshot(1);
  param.set_snapshot_prefix(folder_.path("snapshot"));
  std::string log;
  const auto train = [&] {
    ::testing::internal::CaptureStderr();
    std::vector<float> weights;
    try {
      Solver solver(param, {.keep_all = false});
      solver.Step(kSteps);
      weights = WeightsOf(solver);
    } catch (...) {
      log = ::testing::internal::GetCapturedStderr();
      throw;
    }
    log = ::testing::internal::GetCapturedStderr();
    return weights;
  };
  Sweep([](int64_t calls) { cuda_on_host::LoseDeviceAfter(0, calls); },
        [&] {
          std::vector<float> weights = train();
          EXPECT_THAT(log, Not(HasSubstr("training goes on")));
          return weights;
        },
        [&](const DeviceError& error) {
          IsLost(error);
          EXPECT_THAT(log, Not(HasSubstr("training goes on")));
        });
}

// Going back also needs the device then, and must not hide the error or the end.
TEST_F(CudaTroubleTest, ALostDeviceEndsTrainingThatCanGoBack) {
  struct Ends final : TrainingObserver {
    void OnEnd(const TrainingEnd& end) override { messages.push_back(end.error); }
    std::vector<std::string> messages;
  };
  Ends ends;
  const auto train = [&] {
    ends.messages.clear();
    SolverParameter param = Definition();
    param.set_watchdog("abort");
    Solver solver(param, {.keep_all = false});
    solver.AddObserver(&ends);
    solver.Step(kSteps);
    return WeightsOf(solver);
  };
  int told = 0;
  Sweep([](int64_t calls) { cuda_on_host::LoseDeviceAfter(0, calls); }, train,
        [&](const DeviceError& error) {
          IsLost(error);
          if (ends.messages.empty()) return;  // before or after training
          EXPECT_THAT(ends.messages, ::testing::SizeIs(1));
          told += !ends.messages[0].empty();
        });
  EXPECT_GT(told, 5);
}

TEST_F(CudaTroubleTest, ALostDeviceEndsTrainingOnAll) {
  Sweep([](int64_t calls) { cuda_on_host::LoseDeviceAfter(0, calls); },
        [&] { return TrainOnTwo(); }, IsLost);
}

// A recording takes its own memory. If there is none, steps run one by one.
TEST_F(CudaTroubleTest, WithoutMemoryForARecordingStepsRunOneByOne) {
  const std::vector<float> want = TrainOn(0);
  Solver solver(Definition(), {.keep_all = false});
  const int64_t graphs = cuda_on_host::LaunchesSoFar().graphs;
  cuda_on_host::LeaveNoMemoryForRecordings();
  solver.Step(kSteps);
  EXPECT_TRUE(cuda_on_host::EndTrouble());
  EXPECT_EQ(cuda_on_host::LaunchesSoFar().graphs, graphs);
  EXPECT_EQ(WeightsOf(solver), want);
  EXPECT_THAT(TrainingNet(solver.net()).executor().captured().reason, HasSubstr("out of memory"));
}

// An input that is too large makes that pass fail, but damages neither the net nor its weights.
TEST_F(CudaTroubleTest, ANetGoesOnAfterAnInputThatIsTooLarge) {
  NetParameter param;
  ParseTextProto(R"pb(
                   layer {
                     name: "data"
                     type: "Input"
                     top: "data"
                     input_param { shape { dim: 2 dim: 3 dim: 8 dim: 8 } }
                   }
                   layer {
                     name: "conv"
                     type: "Convolution"
                     bottom: "data"
                     top: "conv"
                     convolution_param {
                       num_output: 4
                       kernel_size: 3
                       weight_filler { type: "xavier" }
                     }
                   }
                   layer { name: "bn" type: "BatchNorm" bottom: "conv" top: "bn" }
                   layer { name: "tanh" type: "TanH" bottom: "bn" top: "tanh" }
                   layer {
                     name: "pool"
                     type: "Pooling"
                     bottom: "tanh"
                     top: "pool"
                     pooling_param { pool: AVE global_pooling: true }
                   }
                 )pb",
                 "net", &param);
  for (const bool keep_all : {false, true}) {
    Net net(param, {.keep_all = keep_all, .seed = 3});
    const auto run = [&](int batch) {
      Blob& data = *net.blob_by_name("data");
      data.Reshape({batch, 3, 8, 8});
      net.Reshape();
      float* const numbers = data.mutable_cpu_data<float>();
      for (int64_t i = 0; i < data.count(); ++i) numbers[i] = static_cast<float>(i * 7 % 11);
      net.Forward();
      const Blob& result = *net.blob_by_name("pool");
      const float* const values = result.cpu_data<float>();
      return std::vector<float>(values, values + result.count());
    };
    const std::vector<float> want = run(2);
    int ended = 0;
    bool has_come = true;
    for (int64_t allocations = 0; has_come; ++allocations) {
      SCOPED_TRACE(StrCat(keep_all, " ", allocations));
      const int large = 20 + static_cast<int>(allocations);  // more than available
      cuda_on_host::LeaveMemoryFor(allocations);
      try {
        run(large);
      } catch (const DeviceError& error) {
        IsOutOfMemory(error);
        ++ended;
      }
      has_come = cuda_on_host::EndTrouble();
      ASSERT_EQ(run(2), want);
      const std::vector<float> found = run(large + 30);
      ASSERT_EQ(std::vector<float>(found.begin(), found.begin() + 8), want);
      ASSERT_EQ(run(2), want);
    }
    EXPECT_GT(ended, 0);
  }
}

}  // namespace
}  // namespace caffe
