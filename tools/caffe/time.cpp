// caffe time: a model's time per pass and per layer.
#include <glog/logging.h>

#include <chrono>
#include <functional>
#include <sstream>

#include "caffe/common.hpp"
#include "caffe/error.hpp"
#include "caffe/plan_report.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/devices.hpp"
#include "tools/caffe/flags.hpp"

DEFINE_bool(explain, false, "Also print each step's kernel and why better ones refused (time).");

namespace caffe::tools {
namespace {

// Passes until a GPU has captured its steps and its clocks are up.
constexpr int kWarmUps = 3;

double Milliseconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

void LogSteps(const Net& net) {
  for (const PlanStep& step : PlanSteps(net)) {
    LOG(INFO) << (step.is_backward ? "B " : "F ") << step.layers << ": " << step.op << " by "
              << step.kernel;
    for (const std::string& refusal : step.refusals) LOG(INFO) << "    not " << refusal;
  }
}

void RunOnce(Net& net, bool is_training) {
  LOG(INFO) << "Performing Forward";
  float initial_loss = 0;
  net.Forward(&initial_loss);
  LOG(INFO) << "Initial loss: " << initial_loss;
  if (!is_training) {
    LOG(INFO) << "A net of the TEST phase is compiled without backward; -phase TRAIN times both";
  }
  LOG(INFO) << "Performing Backward";
  net.Backward();
}

void LogIteration(int i, double milliseconds) {
  LOG(INFO) << "Iteration: " << i + 1 << " forward-backward time: " << milliseconds << " ms.";
}

void TimeWholePasses(Net& net) {
  for (int i = -kWarmUps; i < FLAGS_iterations; ++i) {
    const double milliseconds = Milliseconds([&] {
      net.LaunchForwardBackward();
      net.AwaitLoss();
    });
    if (i >= 0) LogIteration(i, milliseconds);
  }
}

// Sums over all iterations, in milliseconds.
struct PassTimes {
  double forward = 0, backward = 0, total = 0;
};

PassTimes TimeSteps(Net& net, bool logs_iterations) {
  SetProfiling(net, true);
  PassTimes times;
  times.total = Milliseconds([&] {
    for (int i = 0; i < FLAGS_iterations; ++i) {
      const double forward = Milliseconds([&] { net.Forward(); });
      const double backward = Milliseconds([&] { net.Backward(); });
      times.forward += forward;
      times.backward += backward;
      if (logs_iterations) LogIteration(i, forward + backward);
    }
  });
  return times;
}

void LogLayerTime(const std::string& layer, const char* direction, double milliseconds) {
  std::ostringstream name;
  name.width(10);
  name << layer;
  LOG(INFO) << name.str() << "\t" << direction << ": " << milliseconds / FLAGS_iterations << " ms.";
}

void LogTimes(Net& net, const PassTimes& times) {
  LOG(INFO) << "Average time per layer: ";
  for (const LayerTime& time : LayerTimes(net)) {
    LogLayerTime(time.layer, "forward", time.forward_ms);
    LogLayerTime(time.layer, "backward", time.backward_ms);
  }
  LOG(INFO) << "Average Forward pass: " << times.forward / FLAGS_iterations << " ms.";
  LOG(INFO) << "Average Backward pass: " << times.backward / FLAGS_iterations << " ms.";
  LOG(INFO) << "Average Forward-Backward: " << (times.forward + times.backward) / FLAGS_iterations
            << " ms.";
  LOG(INFO) << "Total Time: " << times.total << " ms.";
}

void Time(const std::string&) {
  Require(!FLAGS_model.empty(), "-model is missing; give the net prototxt");
  CheckIterations();
  UseDevice();
  const bool is_training = PhaseFromFlag() == TRAIN;
  Net net(FLAGS_model, PhaseFromFlag(), FLAGS_level, StagesFromFlag(),
          NetOptionsFromFlags(is_training));
  if (FLAGS_explain) LogSteps(net);
  RunOnce(net, is_training);
  LOG(INFO) << "*** Benchmark begins ***";
  LOG(INFO) << "Testing for " << FLAGS_iterations << " iterations.";
  // A GPU replays whole passes, but times its steps one by one: first the passes, then the steps.
  const bool is_gpu = Caffe::mode() == Caffe::GPU;
  if (is_gpu) TimeWholePasses(net);
  LogTimes(net, TimeSteps(net, /*logs_iterations=*/!is_gpu));
  LOG(INFO) << "*** Benchmark ends ***";
}

const CommandRegistrar registrar("time", {.help = "measure a model's time per layer", .run = Time});

}  // namespace
}  // namespace caffe::tools
