// A device that can record work gets each range of steps once and replays it. The device here is
// the CPU with a stream that counts.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "caffe/device/device.hpp"
#include "caffe/device/device_fault.hpp"
#include "caffe/error.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/plan/executor.hpp"

namespace caffe {
namespace {

struct Counts {
  int recorded = 0, launched = 0, kept_busy = 0;
};

class CountedGraph final : public CapturedGraph {
 public:
  size_t num_nodes() const override { return 1; }
};

// Captures count for the stream that they are launched on.
class CountingStream final : public Stream {
 public:
  explicit CountingStream(CountingStream* launched_on = nullptr)
      : launched_on_(launched_on == nullptr ? *this : *launched_on) {}
  void* native() const override { return nullptr; }
  void Synchronize() override {}
  void Record(Event&) override {}
  void Wait(const Event&) override {}
  void CopyFromHost(void* device, const void* host, size_t bytes) override {
    std::memcpy(device, host, bytes);
  }
  void CopyToHost(void* host, const void* device, size_t bytes) override {
    std::memcpy(host, device, bytes);
  }
  void FillZero(void* device, size_t bytes) override { std::memset(device, 0, bytes); }
  void Copy(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  bool can_capture() const override { return true; }
  std::unique_ptr<CapturedGraph> EndCapture() override {
    if (launched_on_.cannot_record) throw DeviceError("a copy cannot be recorded");
    ++launched_on_.counts.recorded;
    return std::make_unique<CountedGraph>();
  }
  void Launch(const CapturedGraph&) override { ++counts.launched; }
  void KeepBusy(double) override { ++counts.kept_busy; }

  Counts counts;
  bool cannot_record = false;

 private:
  CountingStream& launched_on_;
};

class CountedWork final : public AppendedWork {
 public:
  uint64_t Prepare() override {
    ++prepared;
    return version;
  }
  void Launch(Stream&) override { ++launched; }
  void Finish() override { ++finished; }

  uint64_t version = 1;
  int prepared = 0, launched = 0, finished = 0;
};

class RecordingDevice final : public Device {
 public:
  DeviceKind kind() const override { return DeviceKind::kCpu; }
  std::string description() const override { return "a CPU that records"; }
  int num_threads() const override { return 1; }
  std::shared_ptr<void> Allocate(size_t bytes) override { return cpu_->Allocate(bytes); }
  bool is_host_accessible() const override { return true; }
  void CopyToHost(void* host, const void* device, size_t bytes) override {
    std::memcpy(host, device, bytes);
  }
  void CopyFromHost(void* device, const void* host, size_t bytes) override {
    std::memcpy(device, host, bytes);
  }
  void Synchronize() override {}
  Stream& compute_stream() override { return stream; }
  std::unique_ptr<Stream> MakeStream() override {
    return std::make_unique<CountingStream>(&stream);
  }

  CountingStream stream;

 private:
  const std::shared_ptr<Device> cpu_ = MakeDevice(DeviceKind::kCpu);
};

// Data from the host, then two layers.
constexpr const char* kNet = R"pb(
  name: "net"
  layer {
    name: "data"
    type: "DummyData"
    top: "x"
    dummy_data_param {
      shape { dim: 4 dim: 3 }
      data_filler { type: "gaussian" }
    }
  }
  layer { name: "a" type: "TanH" bottom: "x" top: "a" }
  layer { name: "b" type: "Sigmoid" bottom: "a" top: "b" }
)pb";

class RecordedStepsTest : public ::testing::Test {
 protected:
  // An executor of the net's own program with another device.
  RecordedStepsTest() : net_(Definition(), Options()) { UseProgram(true); }
  void UseProgram(bool records_steps) {
    Program program = Assemble(net_.graph());
    program.device = device_;
    program.records_steps = records_steps;
    executor_ = std::make_unique<Executor>(std::make_shared<const Program>(std::move(program)));
    executor_->Bind(TrainingNet(net_).executor().bindings());
  }
  static NetParameter Definition() {
    NetParameter param;
    ParseTextProto(kNet, "net", &param);
    return param;
  }
  static NetOptions Options() { return {.keep_all = false, .with_backward = false, .seed = 1}; }

  Counts RunTimes(int times, const Executor::RunOptions& options = {}) {
    for (int i = 0; i < times; ++i) executor_->Run(options);
    return device_->stream.counts;
  }

  const std::shared_ptr<RecordingDevice> device_ = std::make_shared<RecordingDevice>();
  Net net_;
  std::unique_ptr<Executor> executor_;
};

TEST_F(RecordedStepsTest, StepsAfterAHostCallAreRecordedInTheSecondRunAndThenLaunched) {
  EXPECT_EQ(RunTimes(1).recorded, 0);
  EXPECT_EQ(RunTimes(1).recorded, 1);
  const Counts counts = RunTimes(3);
  EXPECT_EQ(counts.recorded, 1);
  EXPECT_EQ(counts.launched, 4);
}

// The host gets ahead first, because a step's time must not include its launch.
TEST_F(RecordedStepsTest, ProfiledRunsBeginWithABusyDevice) {
  EXPECT_EQ(RunTimes(2).kept_busy, 0);
  executor_->profiler().set_on(true);
  EXPECT_EQ(RunTimes(2).kept_busy, 2);
}

TEST_F(RecordedStepsTest, AppendedWorkIsInTheRecordingOfTheLastSteps) {
  CountedWork work;
  const Counts counts = RunTimes(5, {.appended = &work});
  EXPECT_EQ(counts.recorded, 1);
  EXPECT_EQ(counts.launched, 4);
  EXPECT_EQ(work.launched, 2);  // in the first run and in the recording
  EXPECT_EQ(work.prepared, 5);
  EXPECT_EQ(work.finished, 5);
}

TEST_F(RecordedStepsTest, AppendedWorkThatHasChangedIsRecordedAnew) {
  CountedWork work;
  RunTimes(3, {.appended = &work});
  work.version = 2;
  EXPECT_EQ(RunTimes(1, {.appended = &work}).recorded, 1);
  EXPECT_EQ(work.launched, 3);
  EXPECT_EQ(RunTimes(3, {.appended = &work}).recorded, 2);
  EXPECT_EQ(work.launched, 4);
}

TEST_F(RecordedStepsTest, RunsWithAndWithoutAppendedWorkHaveTheirOwnRecordings) {
  CountedWork work;
  RunTimes(3, {.appended = &work});
  EXPECT_EQ(RunTimes(3).recorded, 2);
  EXPECT_EQ(work.launched, 2);
  EXPECT_EQ(RunTimes(3, {.appended = &work}).recorded, 2);
  EXPECT_EQ(work.finished, 6);
}

TEST_F(RecordedStepsTest, AppendedWorkAfterAHostCallIsRecordedAlone) {
  CountedWork work;
  const Counts counts = RunTimes(5, {.last_layer = 0, .appended = &work});
  EXPECT_EQ(counts.recorded, 1);
  EXPECT_EQ(counts.launched, 4);
  EXPECT_EQ(work.launched, 2);
}

TEST_F(RecordedStepsTest, AppendedWorkIsLaunchedInEachRunWhereNothingIsRecorded) {
  CountedWork work;
  device_->stream.cannot_record = true;
  RunTimes(4, {.appended = &work});
  EXPECT_EQ(work.launched, 5);  // once in the recording that failed
  executor_->profiler().set_on(true);
  RunTimes(2, {.appended = &work});
  EXPECT_EQ(work.launched, 7);
  EXPECT_EQ(work.finished, 6);
}

TEST_F(RecordedStepsTest, WhatCannotBeRecordedRunsStepByStepAndIsLoggedOnce) {
  device_->stream.cannot_record = true;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RunTimes(4).launched, 0);
  const std::string log = ::testing::internal::GetCapturedStderr();
  const std::string told =
      "The steps from layer 'a' (TanH) to layer 'b' (Sigmoid) run one by one, which takes longer "
      "than one launch: a copy cannot be recorded";
  const size_t at = log.find(told);
  ASSERT_NE(at, std::string::npos) << log;
  EXPECT_EQ(log.find(told, at + 1), std::string::npos) << log;
}

TEST_F(RecordedStepsTest, TellsWhatIsCaptured) {
  RunTimes(1);
  EXPECT_EQ(executor_->captured().segments, 0);
  RunTimes(2);
  EXPECT_EQ(executor_->captured().segments, 1);
  EXPECT_EQ(executor_->captured().nodes, 1u);
  EXPECT_EQ(executor_->captured().refused, 0);
  device_->stream.cannot_record = true;
  RunTimes(3, {.last_layer = 1});
  EXPECT_EQ(executor_->captured().refused, 1);
}

// A step that notices a fault of previously launched work is not to blame.
TEST_F(RecordedStepsTest, OnlyErrorsOfAStepAreToldWithItsPlace) {
  const auto message_of = [&](auto error) -> std::string {
    Executor::RunOptions options;
    options.inspect = [&](const Program::Step&, auto) { throw error; };
    try {
      executor_->Run(options);
    } catch (const DeviceError& caught) {
      return caught.what();
    }
    return "";
  };
  EXPECT_EQ(message_of(DeviceFault("illegal address")), "illegal address");
  const std::string at_step = message_of(DeviceError("no memory"));
  EXPECT_NE(at_step.find("layer"), std::string::npos) << at_step;
  EXPECT_NE(at_step.find("no memory"), std::string::npos) << at_step;
}

TEST_F(RecordedStepsTest, ProfiledStepsRunOneByOne) {
  RunTimes(3);
  executor_->profiler().set_on(true);
  const int launched = device_->stream.counts.launched;
  EXPECT_EQ(RunTimes(2).launched, launched);
}

TEST_F(RecordedStepsTest, AProgramMayAskForStepsThatAreNotRecorded) {
  UseProgram(false);
  EXPECT_EQ(RunTimes(4).recorded, 0);
}

}  // namespace
}  // namespace caffe
