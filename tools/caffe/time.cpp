// caffe time: measures a model's time per pass and per layer.
#include <glog/logging.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>

#include "caffe/common.hpp"
#include "caffe/core/join_refusals.hpp"
#include "caffe/error.hpp"
#include "caffe/gpu_libraries.hpp"
#include "caffe/io/json.hpp"
#include "caffe/plan_report.hpp"
#include "caffe/solver.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/devices.hpp"
#include "tools/caffe/model_folder.hpp"
#include "tools/caffe/noise.hpp"
#include "tools/caffe/options.hpp"

namespace caffe::tools {
namespace {

// Passes until a GPU has captured its steps and raised its clocks.
constexpr int kWarmUps = 3;
// Passes launched before the host waits for them.
constexpr int kPassesOfBlock = 10;

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
    for (const std::string& refusal : JoinRefusals(step.refusals))
      LOG(INFO) << "    not " << refusal;
  }
}

void RunOnce(Net& net, bool is_training) {
  LOG(INFO) << "Performing Forward";
  float initial_loss = 0;
  net.Forward(&initial_loss);
  LOG(INFO) << "Initial loss: " << initial_loss;
  if (!is_training) {
    LOG(INFO) << "A net of the TEST phase is compiled without backward; --phase TRAIN times both";
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

double ThreadSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Times of blocks of passes that run back to back, as in training: the host waits only at the end
// of a block.
struct BlockTimes {
  std::vector<double> pass_ms;  // mean time of a pass in each block, sorted
  double host_idle_share = 0;   // share of the total time in which the host's thread waited

  double Percentile(double share) const {
    return pass_ms[static_cast<size_t>(share * static_cast<double>(pass_ms.size() - 1) + 0.5)];
  }
};

// `launch(n)` launches n passes and waits for the last.
BlockTimes TimeBlocks(int passes, const std::function<void(int)>& launch) {
  launch(kWarmUps);
  BlockTimes times;
  const double thread_begin = ThreadSeconds();
  double sum = 0;
  for (int left = passes; left > 0; left -= kPassesOfBlock) {
    const int block = std::min(left, kPassesOfBlock);
    const double milliseconds = Milliseconds([&] { launch(block); });
    sum += milliseconds;
    times.pass_ms.push_back(milliseconds / block);
  }
  times.host_idle_share = std::max(0.0, 1 - 1e3 * (ThreadSeconds() - thread_begin) / sum);
  std::sort(times.pass_ms.begin(), times.pass_ms.end());
  return times;
}

BlockTimes TimeBlocks(Net& net, int passes) {
  return TimeBlocks(passes, [&](int block) {
    for (int i = 0; i < block; ++i) net.LaunchForwardBackward();
    for (int i = 0; i < block; ++i) net.AwaitLoss();
  });
}

// The solver to benchmark: momentum and weight decay, at a rate that hardly changes the weights.
SolverParameter SolverOf(const NetParameter& net, const NetFlags& flags) {
  SolverParameter solver;
  *solver.mutable_net_param() = net;
  solver.mutable_train_state()->set_level(flags.level);
  for (const std::string& stage : flags.stages) solver.mutable_train_state()->add_stage(stage);
  solver.set_precision(flags.precision.value_or(FP32));
  solver.set_memory_limit(flags.memory_limit);
  solver.set_base_lr(1e-4f);
  solver.set_lr_policy("fixed");
  solver.set_momentum(0.9f);
  solver.set_weight_decay(1e-4f);
  solver.set_max_iter(std::numeric_limits<int>::max());
  solver.set_display(0);
  solver.set_random_seed(1);
  solver.set_snapshot_after_train(false);
  return solver;
}

// Milliseconds per update, without passes. Gradients are zero, so that any number of updates keeps
// values in the range of real training.
double TimeUpdate(Solver& solver, int updates) {
  Net& net = solver.net();
  net.ClearParamDiffs();
  // Waits for a parameter that updates write: frozen ones, such as a BatchNorm's statistics, would
  // be ready at once.
  const Blob* smallest = nullptr;
  for (const Net::LearnableParam& param : net.learnable_params()) {
    if (param.lr_mult == 0 || !param.has_gradient) continue;
    if (smallest == nullptr || param.blob->count() < smallest->count()) smallest = param.blob.get();
  }
  if (smallest == nullptr) return 0;
  const BlockTimes times = TimeBlocks(updates, [&](int block) {
    for (int i = 0; i < block; ++i) solver.ApplyUpdate();
    smallest->cpu_data();  // waits for the device
  });
  return times.Percentile(0.5);
}

// BVLC's caffe time runs every layer's backward pass even without a loss; ours needs one.
void WarnWithoutLoss(const Net& net) {
  const bool has_backward = std::ranges::any_of(PlanSteps(net), &PlanStep::is_backward);
  LOG_IF(WARNING, !has_backward)
      << "No layer is a loss, so there is nothing to compute backward; give the net that is "
         "trained (train_val.prototxt), or --phase TEST to time inference.";
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

void PutBlocks(const BlockTimes& times, int64_t batch, bool updates, JsonObject* root) {
  JsonObject* blocks = JsonField(root, "pipelined");
  PutJson(blocks, "updates", updates);
  PutJson(blocks, "p10_ms", times.Percentile(0.1));
  PutJson(blocks, "p50_ms", times.Percentile(0.5));
  PutJson(blocks, "p90_ms", times.Percentile(0.9));
  PutJson(blocks, "host_idle_share", times.host_idle_share);
  if (batch > 0) {
    PutJson(root, "batch", batch);
    PutJson(blocks, "images_per_s", 1e3 * static_cast<double>(batch) / times.Percentile(0.5));
  }
}

void PutCaptures(const PlanCaptures& captures, JsonObject* root) {
  JsonObject* json = JsonField(root, "captured");
  PutJson(json, "stretches", captures.stretches);
  PutJson(json, "nodes", captures.nodes);
  PutJson(json, "refused", captures.refused);
  PutJson(json, "reason", captures.reason);
}

// Adds each step with its time when run alone, and its bytes and operations.
void PutSteps(Net& net, JsonObject* root) {
  const std::vector<double> milliseconds = StepMilliseconds(net);
  const std::vector<PlanStep> steps = PlanSteps(net);
  for (size_t i = 0; i < steps.size(); ++i) {
    JsonObject* step = AddJson(root, "steps");
    PutJson(step, "layers", steps[i].layers);
    PutJson(step, "op", steps[i].op);
    PutJson(step, "kernel", steps[i].kernel);
    if (!steps[i].algorithms.empty()) PutJson(step, "algorithm", steps[i].algorithms[0]);
    PutJson(step, "backward", steps[i].is_backward);
    PutJson(step, "ms", milliseconds[i]);
    PutJson(step, "bytes", steps[i].bytes);
    PutJson(step, "flops", steps[i].flops);
  }
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
    net_flags_.AddCalibration(app);
    net_flags_.AddInputs(app);
    net_flags_.AddOverrides(app, "layer[data].data_param.batch_size=16");
    net_flags_.AddMemoryLimit(app);
    app.add_flag("--noise", feeds_noise_,
                 "Feed normal noise in the device's memory instead of the data layers' output");
    app.add_option("--batch", batch_, "Items of a batch of that noise; implies --noise")
        ->type_name("N")
        ->default_str("the definition's own")
        ->check(CLI::Validator(CLI::PositiveNumber).description(""));
    app.add_flag("--update", updates_,
                 "Also time passes that end with an update of the weights, as training does");
    app.add_flag("--explain", explains_,
                 "Also print each step's kernel and why better ones refused");
    AddJsonFlag(app, &json_);
  }

  void Run() override {
    RequireModel(model_);
    const auto start = std::chrono::steady_clock::now();
    TakeFolder();
    UseDevice(gpu_);
    Require(!updates_ || net_flags_.phase == TRAIN,
            "--update needs a net that is trained; leave out --phase TEST");
    const Subject subject = Make();  // here, so that its threads end before errors are reported
    Net& net = *subject.net;
    if (explains_) LogSteps(net);
    if (net_flags_.phase == TRAIN) WarnWithoutLoss(net);
    RunOnce(net, net_flags_.phase == TRAIN);
    const std::chrono::duration<double> started = std::chrono::steady_clock::now() - start;
    LOG(INFO) << "*** Benchmark begins ***";
    LOG(INFO) << "Testing for " << iterations_ << " iterations.";
    // A GPU replays whole passes but times steps one by one, so it needs two measurements.
    const bool is_gpu = Caffe::mode() == Caffe::GPU;
    if (is_gpu && !updates_) TimeWholePasses(net, iterations_);
    std::optional<BlockTimes> blocks;
    if (is_gpu || updates_) blocks = TimePipelined(subject);
    const PlanCaptures captures = CapturesOf(net);
    const PassTimes times = TimeSteps(net, iterations_, /*logs_iterations=*/!is_gpu);
    LogTimes(net, iterations_, times);
    std::optional<double> update_ms;  // last, because it changes the weights without a pass
    if (updates_) update_ms = TimeUpdate(*subject.solver, iterations_);
    if (blocks) {
      LOG(INFO) << "Pass in a row" << (updates_ ? " with update" : "") << ": "
                << blocks->Percentile(0.5) << " ms (10 % below " << blocks->Percentile(0.1)
                << ", 10 % above " << blocks->Percentile(0.9) << ").";
    }
    LOG_IF(INFO, update_ms.has_value()) << "Update: " << update_ms.value_or(0) << " ms.";
    LOG(INFO) << "*** Benchmark ends ***";
    if (!json_) return;
    const GpuPlans plans = GpuPlansSoFar();
    JsonObject root = ToJson(net, iterations_, times);
    PutJson(&root, "start_seconds", started.count());
    PutJson(&root, "plan_bytes", MemoryOfPlan(net, updates_ ? 1 : 0).total());
    PutJson(&root, "plans_proposed", plans.proposed);
    PutJson(&root, "plans_built", plans.built);
    if (blocks) PutBlocks(*blocks, items_, updates_, &root);
    if (update_ms) PutJson(&root, "update_ms", *update_ms);
    PutCaptures(captures, &root);
    PutSteps(net, &root);
    std::cout << FormatJson(root);
  }

 private:
  // The net, and with --update the solver that trains it.
  struct Subject {
    std::shared_ptr<Net> net;
    std::unique_ptr<Solver> solver;
  };

  // For a model's folder, takes the net of the phase.
  void TakeFolder() {
    if (!ModelFolder::Is(model_)) return;
    const ModelFolder folder(model_);
    model_ = net_flags_.phase == TRAIN ? folder.train_net() : folder.test_net();
    folder.Enter({&net_flags_.calibration});
  }

  Subject Make() {
    if (feeds_noise_ || batch_ > 0) items_ = ReplaceDataByNoise(model_, batch_, &net_flags_);
    const bool is_training = net_flags_.phase == TRAIN;
    Subject subject;
    if (updates_) {
      const NetParameter definition = net_flags_.ReadNet(model_, TRAIN);
      subject.solver = std::make_unique<Solver>(
          SolverOf(definition, net_flags_),
          SolverOptions{.keep_all = false, .file = model_, .lenient = net_flags_.lenient});
      subject.net = subject.solver->shared_net();
    } else {
      subject.net =
          net_flags_.MakeNet(model_, net_flags_.phase, net_flags_.ToNetOptions(is_training));
    }
    if (items_ > 0) PutNoise(net_flags_.ReadNet(model_, net_flags_.phase), *subject.net);
    return subject;
  }

  BlockTimes TimePipelined(const Subject& subject) const {
    if (subject.solver == nullptr) return TimeBlocks(*subject.net, iterations_);
    return TimeBlocks(iterations_, [&](int block) { subject.solver->Step(block); });
  }

  std::string model_, gpu_;
  int iterations_ = 50, batch_ = 0;
  int64_t items_ = 0;  // per batch of noise; 0: data layers provide the batches
  NetFlags net_flags_;
  bool explains_ = false, json_ = false, feeds_noise_ = false, updates_ = false;
};

const CommandRegistrar<Time> time_registrar(
    "time", {.purpose = Purpose::kInspect,
             .summary = "measure a model's time per layer",
             .about = "Runs forward and backward passes of a net and prints the time of each "
                      "pass and of each layer, in milliseconds.",
             .examples = "caffe time lenet.prototxt --iterations=10\n"
                         "caffe time lenet.prototxt --phase=TEST --precision=bf16\n"
                         "caffe time deploy.prototxt --phase=TEST --precision=int8 "
                         "--calibration=net.json\n"
                         "caffe time resnet50.prototxt --gpu=0 --batch=256 --update --json"});

}  // namespace
}  // namespace caffe::tools
