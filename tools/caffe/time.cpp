// caffe time: a model's time per pass and per layer.
#include <glog/logging.h>

#include <chrono>
#include <functional>
#include <iostream>
#include <sstream>

#include "caffe/common.hpp"
#include "caffe/io/json.hpp"
#include "caffe/plan_report.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/devices.hpp"
#include "tools/caffe/options.hpp"

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

void TimeWholePasses(Net& net, int iterations) {
  for (int i = -kWarmUps; i < iterations; ++i) {
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

PassTimes TimeSteps(Net& net, int iterations, bool logs_iterations) {
  SetProfiling(net, true);
  PassTimes times;
  times.total = Milliseconds([&] {
    for (int i = 0; i < iterations; ++i) {
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
  LOG(INFO) << name.str() << "\t" << direction << ": " << milliseconds << " ms.";
}

void LogTimes(Net& net, int iterations, const PassTimes& times) {
  LOG(INFO) << "Average time per layer: ";
  for (const LayerTime& time : LayerTimes(net)) {
    LogLayerTime(time.layer, "forward", time.forward_ms / iterations);
    LogLayerTime(time.layer, "backward", time.backward_ms / iterations);
  }
  LOG(INFO) << "Average Forward pass: " << times.forward / iterations << " ms.";
  LOG(INFO) << "Average Backward pass: " << times.backward / iterations << " ms.";
  LOG(INFO) << "Average Forward-Backward: " << (times.forward + times.backward) / iterations
            << " ms.";
  LOG(INFO) << "Total Time: " << times.total << " ms.";
}

JsonObject ToJson(Net& net, int iterations, const PassTimes& times) {
  JsonObject root;
  PutJson(&root, "net", net.name());
  PutJson(&root, "phase", Phase_Name(net.phase()));
  PutJson(&root, "iterations", iterations);
  PutJson(&root, "forward_ms", times.forward / iterations);
  PutJson(&root, "backward_ms", times.backward / iterations);
  PutJson(&root, "forward_backward_ms", (times.forward + times.backward) / iterations);
  PutJson(&root, "total_ms", times.total);
  for (const LayerTime& time : LayerTimes(net)) {
    JsonObject* layer = AddJson(&root, "layers");
    PutJson(layer, "name", time.layer);
    PutJson(layer, "forward_ms", time.forward_ms / iterations);
    PutJson(layer, "backward_ms", time.backward_ms / iterations);
  }
  return root;
}

class Time : public Command {
 public:
  explicit Time(CLI::App& app) {
    AddModel(app, &model_);
    AddIterations(app, &iterations_);
    AddGpu(app, &gpu_, "The number of the GPU to run on");
    net_flags_.AddPhase(app);
    net_flags_.AddState(app);
    net_flags_.AddForeign(app);
    net_flags_.AddPrecision(app);
    net_flags_.AddInputs(app);
    net_flags_.AddOverrides(app, "layer[data].data_param.batch_size=16");
    net_flags_.AddMemoryLimit(app);
    app.add_flag("--explain", explains_,
                 "Also print each step's kernel and why better ones refused");
    AddJsonFlag(app, &json_);
  }

  void Run() override {
    RequireModel(model_);
    UseDevice(gpu_);
    const bool is_training = net_flags_.phase == TRAIN;
    const std::unique_ptr<Net> made =
        net_flags_.MakeNet(model_, net_flags_.phase, net_flags_.ToNetOptions(is_training));
    Net& net = *made;
    if (explains_) LogSteps(net);
    RunOnce(net, is_training);
    LOG(INFO) << "*** Benchmark begins ***";
    LOG(INFO) << "Testing for " << iterations_ << " iterations.";
    // A GPU replays whole passes, but times its steps one by one: first the passes, then the steps.
    const bool is_gpu = Caffe::mode() == Caffe::GPU;
    if (is_gpu) TimeWholePasses(net, iterations_);
    const PassTimes times = TimeSteps(net, iterations_, /*logs_iterations=*/!is_gpu);
    LogTimes(net, iterations_, times);
    LOG(INFO) << "*** Benchmark ends ***";
    if (json_) std::cout << FormatJson(ToJson(net, iterations_, times));
  }

 private:
  std::string model_, gpu_;
  int iterations_ = 50;
  NetFlags net_flags_;
  bool explains_ = false, json_ = false;
};

const CommandRegistrar<Time> time_registrar(
    "time", {.summary = "measure a model's time per layer",
             .about = "Runs forward and backward passes of a net and prints the time of each "
                      "pass and of each layer, in milliseconds.",
             .examples = "caffe time lenet.prototxt --iterations=10\n"
                         "caffe time lenet.prototxt --phase=TEST --precision=bf16"});

}  // namespace
}  // namespace caffe::tools
