// The program `caffe`; Commands() lists what it does.
#include "caffe/caffe.hpp"

#include <gflags/gflags.h>
#include <glog/logging.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <sstream>

#include "caffe/data/pipeline_bench.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/net_files.hpp"

DEFINE_string(
    gpu, "",
    "GPUs to train on, by number separated by commas, or 'all'; the other commands use the "
    "first. Empty: CPU. plan also takes a chip that need not be "
    "there, by name or compute capability: H200, A100, 9.0; device_query also takes "
    "several separated by commas, or 'all'.");
DEFINE_string(solver, "", "The solver prototxt (train, plan).");
DEFINE_string(
    model, "",
    "The net prototxt (test, time, plan, data-bench); test and test_detection take several, "
    "separated by commas.");
DEFINE_string(phase, "", "TRAIN or TEST (time, plan; default TRAIN).");
DEFINE_int32(level, 0, "The network level.");
DEFINE_string(stage, "", "The network stages, separated by commas.");
DEFINE_string(snapshot, "", "The .solverstate to resume training from (train).");
DEFINE_string(weights, "",
              "The .caffemodel to start from, or several separated by commas (train, test).");
DEFINE_int32(iterations, 50, "The number of iterations to run (test, time).");
DEFINE_string(sigint_effect, "stop", "What SIGINT does while training: snapshot, stop or none.");
DEFINE_string(sighup_effect, "snapshot",
              "What SIGHUP does while training: snapshot, stop or none.");
DEFINE_string(sigterm_effect, "stop",
              "What SIGTERM, by which clusters end jobs, does while training: snapshot, stop or "
              "none. Stopping snapshots, unless snapshot_after_train is false.");
DEFINE_string(ap_version, "11point", "Average precision of detection tests (test_detection).");
DEFINE_bool(show_per_class_result, true, "Show the precision of each class (test_detection).");
DEFINE_string(precision, "",
              "Storage and arithmetic of nets that do not say themselves: fp32, fp16, bf16 or fp64 "
              "(train, test, time, plan).");
DEFINE_int32(workers, 1,
             "Copies of the net that train together, each on its part of the data and of the "
             "processor (train).");
DEFINE_string(trace, "",
              "File to write a timeline to, for chrome://tracing or ui.perfetto.dev (train).");
DEFINE_bool(json, false, "Print JSON instead of a table (plan, data-bench).");
DEFINE_bool(explain, false, "Also print each step's kernel and why better ones refused (time).");
DEFINE_double(seconds, 3, "How long to measure each stage (data-bench).");

namespace {

using caffe::InvalidArgument;
using caffe::Net;
using caffe::Require;

std::vector<std::string> SplitByComma(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

caffe::Phase PhaseFromFlag() {
  if (FLAGS_phase.empty() || FLAGS_phase == "TRAIN") return caffe::TRAIN;
  if (FLAGS_phase == "TEST") return caffe::TEST;
  throw InvalidArgument("-phase is '" + FLAGS_phase + "'; use TRAIN or TEST");
}

// Empty without the flag: then the solver's own field holds.
std::optional<caffe::Precision> PrecisionFromFlag() {
  if (FLAGS_precision.empty()) return std::nullopt;
  std::string name = FLAGS_precision;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return toupper(c); });
  caffe::Precision precision;
  if (caffe::Precision_Parse(name, &precision)) return precision;
  throw InvalidArgument("-precision is '" + FLAGS_precision + "'; use fp32, fp16, bf16 or fp64");
}

caffe::NetOptions NetOptionsFromFlags(bool with_backward) {
  caffe::NetOptions options{.keep_all = false, .with_backward = with_backward};
  options.precision = PrecisionFromFlag().value_or(caffe::FP32);
  return options;
}

// The numbers in -gpu, of one GPU at least; none where the flag is not given.
std::vector<int> GpusFromFlag() {
  std::vector<int> gpus;
  if (FLAGS_gpu == "all") {
    for (int id = 0; id < caffe::NumGpus(); ++id) gpus.push_back(id);
    Require(!gpus.empty(), "-gpu all: this machine has no GPU; leave out -gpu");
    return gpus;
  }
  bool is_understood = true;
  for (const std::string& part : SplitByComma(FLAGS_gpu)) {
    const char *begin = part.data() + std::min(part.find_first_not_of(' '), part.size()),
               *end = part.data() + part.size();
    const auto [rest, error] = std::from_chars(begin, end, gpus.emplace_back());
    is_understood = is_understood && error == std::errc() && rest == end && gpus.back() >= 0;
  }
  Require(
      FLAGS_gpu.empty() || (is_understood && !gpus.empty()), "-gpu is '", FLAGS_gpu,
      "'; give numbers of GPUs separated by commas, or 'all' (caffe device_query -gpu all lists "
      "them)");
  return gpus;
}

// What each GPU is, in their order. Throws DeviceError where one is not there; nothing has been
// logged by then that would tell of it as if it were.
std::vector<std::string> DescribeGpus(const std::vector<int>& gpus) {
  std::vector<std::string> descriptions;
  for (const int gpu : gpus) descriptions.push_back(caffe::DescribeGpu(gpu));
  return descriptions;
}

void UseCpu() {
  LOG(INFO) << "Use CPU.";
  caffe::Caffe::set_mode(caffe::Caffe::CPU);
}

// Nets built from now on run on the first device of -gpu. Throws DeviceError where there is none.
void UseDevice() {
  const std::vector<int> gpus = GpusFromFlag();
  if (gpus.empty()) return UseCpu();
  const std::string description = caffe::DescribeGpu(gpus[0]);
  LOG(INFO) << "Use GPU with device ID " << gpus[0];
  LOG(INFO) << "GPU device name: " << description;
  for (size_t i = 1; i < gpus.size(); ++i) {
    LOG(INFO) << "Not using GPU #" << gpus[i] << " for single-GPU function";
  }
  caffe::Caffe::SetDevice(gpus[0]);
  caffe::Caffe::set_mode(caffe::Caffe::GPU);
}

// ---------------------------------------------------------------------------------------------
// Signals reach the solver through flags that it polls after each iteration.

std::atomic<bool> has_come[NSIG];

void OnSignal(int signal) {
  has_come[signal] = true;
}

caffe::SolverAction::Enum EffectFromFlag(const char* flag, const std::string& value) {
  if (value == "stop") return caffe::SolverAction::STOP;
  if (value == "snapshot") return caffe::SolverAction::SNAPSHOT;
  if (value == "none") return caffe::SolverAction::NONE;
  throw InvalidArgument(std::string("-") + flag + ": Invalid signal effect \"" + value +
                        "\" was specified; use snapshot, stop or none");
}

void HandleSignals(caffe::Solver& solver) {
  struct Effect {
    int signal;
    caffe::SolverAction::Enum action;
  };
  const Effect effects[] = {{SIGINT, EffectFromFlag("sigint_effect", FLAGS_sigint_effect)},
                            {SIGTERM, EffectFromFlag("sigterm_effect", FLAGS_sigterm_effect)},
                            {SIGHUP, EffectFromFlag("sighup_effect", FLAGS_sighup_effect)}};
  struct sigaction action {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigfillset(&action.sa_mask);
  for (const Effect& effect : effects) {
    if (effect.action != caffe::SolverAction::NONE) sigaction(effect.signal, &action, nullptr);
  }
  solver.SetActionFunction([=] {
    for (const Effect& effect : effects) {
      if (has_come[effect.signal].exchange(false)) return effect.action;
    }
    return caffe::SolverAction::NONE;
  });
}

// ---------------------------------------------------------------------------------------------

caffe::SolverParameter SolverFromFlags() {
  Require(!FLAGS_solver.empty(), "-solver is missing; give the solver prototxt");
  caffe::SolverParameter param = caffe::ReadSolverText(FLAGS_solver);
  param.mutable_train_state()->set_level(FLAGS_level);
  for (const std::string& stage : SplitByComma(FLAGS_stage))
    param.mutable_train_state()->add_stage(stage);
  if (PrecisionFromFlag()) param.set_precision(*PrecisionFromFlag());
  return param;
}

// Writes what was recorded when it ends, however the training ended.
class TraceFile {
 public:
  explicit TraceFile(const std::string& file) : file_(file) {
    if (file.empty()) return;
    trace_.emplace();
    Write();  // throws before hours of training, not after them
  }
  ~TraceFile() {
    if (!trace_) return;
    try {
      Write();
      LOG(INFO) << "Wrote the timeline to " << file_;
    } catch (const std::exception& error) {
      LOG(ERROR) << error.what();
    }
  }
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  caffe::Trace* trace() { return trace_ ? &*trace_ : nullptr; }

 private:
  void Write() {
    std::ostringstream json;
    trace_->WriteJson(json);
    caffe::WriteFileAtomically(file_, json.str());
  }

  const std::string file_;
  std::optional<caffe::Trace> trace_;
};

void UseGpus(const std::vector<int>& gpus) {
  const std::vector<std::string> descriptions = DescribeGpus(gpus);
  std::ostringstream numbers;
  for (size_t i = 0; i < gpus.size(); ++i) numbers << (i == 0 ? "" : ", ") << gpus[i];
  LOG(INFO) << "Using GPUs " << numbers.str();
  for (size_t i = 0; i < gpus.size(); ++i)
    LOG(INFO) << "GPU " << gpus[i] << ": " << descriptions[i];
  caffe::Caffe::SetDevice(gpus[0]);
  caffe::Caffe::set_mode(caffe::Caffe::GPU);
}

int Train() {
  Require(FLAGS_snapshot.empty() || FLAGS_weights.empty(),
          "-snapshot and -weights are both given; give a snapshot to resume training or weights to "
          "finetune, "
          "not both");
  caffe::SolverParameter param = SolverFromFlags();
  // As in Caffe, the flag wins over the file.
  if (FLAGS_gpu.empty() && param.has_solver_mode() &&
      param.solver_mode() == caffe::SolverParameter::GPU) {
    Require(FLAGS_workers == 1, FLAGS_solver, ": solver_mode is GPU, but -workers is ",
            FLAGS_workers,
            ", which trains copies on the CPU; set solver_mode: CPU, or give -gpu 0,1 in place of "
            "-workers for a copy on each GPU");
    FLAGS_gpu = std::to_string(param.device_id());
  }
  Require(FLAGS_gpu.empty() || FLAGS_workers == 1,
          "-gpu and -workers are both given; -workers trains copies on the CPU, -gpu 0,1 one on "
          "each GPU");
  if (!FLAGS_weights.empty()) param.add_weights(FLAGS_weights);
  TraceFile file(FLAGS_trace);
  const caffe::SolverOptions options{
      .keep_all = false, .file = FLAGS_solver, .trace = file.trace()};
  const std::vector<int> gpus = GpusFromFlag();
  std::optional<caffe::SolverGroup> group;
  if (gpus.empty()) {
    UseCpu();
    group.emplace(param, options, FLAGS_workers);
  } else {
    UseGpus(gpus);
    group.emplace(param, options, gpus);
  }
  HandleSignals(group->solver(0));
  LOG(INFO) << "Starting Optimization";
  group->Solve(FLAGS_snapshot);
  return 0;
}

// Calls `score` with each net of -model, in turn, with the weights in it.
int ScoreNets(const std::function<void(Net& net)>& score) {
  Require(!FLAGS_model.empty(), "-model is missing; give the net prototxt");
  Require(FLAGS_iterations > 0, "-iterations is ", FLAGS_iterations, "; it must be at least 1");
  UseDevice();
  const std::vector<std::string> models = SplitByComma(FLAGS_model);
  for (const std::string& model : models) {
    if (models.size() > 1) LOG(INFO) << "Net " << model;
    Net net(model, caffe::TEST, FLAGS_level, SplitByComma(FLAGS_stage),
            NetOptionsFromFlags(/*with_backward=*/false));
    Require(!FLAGS_weights.empty() || net.learnable_params().empty(),
            "-weights is missing; give the .caffemodel to score");
    if (!FLAGS_weights.empty()) caffe::LoadWeights(FLAGS_weights, &net);
    LOG(INFO) << "Running for " << FLAGS_iterations << " iterations.";
    score(net);
  }
  return 0;
}

void LogMeanOutputs(Net& net) {
  std::vector<std::pair<std::string, double>> sums;
  double loss_sum = 0;
  for (int i = 0; i < FLAGS_iterations; ++i) {
    float loss = 0;
    net.Forward(&loss);
    loss_sum += loss;
    size_t index = 0;
    for (size_t k = 0; k < net.output_blobs().size(); ++k) {
      const caffe::Blob& blob = *net.output_blobs()[k];
      for (int64_t j = 0; j < blob.count(); ++j, ++index) {
        if (index == sums.size()) sums.emplace_back(net.output_names()[k], 0);
        const float value = blob.cpu_data()[j];
        sums[index].second += value;
        LOG(INFO) << "Batch " << i << ", " << net.output_names()[k] << " = " << value;
      }
    }
  }
  LOG(INFO) << "Loss: " << loss_sum / FLAGS_iterations;
  for (const auto& [name, sum] : sums) {
    const double mean = sum / FLAGS_iterations;
    const float weight = net.loss_weight(name);
    std::ostringstream loss;
    if (weight != 0) loss << " (* " << weight << " = " << weight * mean << " loss)";
    LOG(INFO) << name << " = " << mean << loss.str();
  }
}

int Test() {
  return ScoreNets(LogMeanOutputs);
}

// Of a net that ends in DetectionEvaluate layers.
void LogMeanPrecision(Net& net) {
  std::vector<caffe::DetectionScore> scores(net.output_blobs().size(),
                                            caffe::DetectionScore(FLAGS_ap_version));
  for (int i = 0; i < FLAGS_iterations; ++i) {
    net.Forward();
    for (size_t k = 0; k < scores.size(); ++k) scores[k].Add(*net.output_blobs()[k]);
  }
  for (size_t k = 0; k < scores.size(); ++k) {
    if (FLAGS_show_per_class_result) {
      for (const auto& [label, precision] : scores[k].AveragePrecisions()) {
        LOG(INFO) << "class AP " << label << ": " << precision;
      }
    }
    LOG(INFO) << "Test net output mAP #" << k << ": " << net.output_names()[k] << " = "
              << scores[k].MeanAveragePrecision();
  }
}

int TestDetection() {
  return ScoreNets(LogMeanPrecision);
}

// Milliseconds that `fn` takes.
double Milliseconds(const std::function<void()>& fn) {
  const auto start = std::chrono::steady_clock::now();
  fn();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

void LogSteps(const Net& net) {
  for (const caffe::PlanStep& step : caffe::PlanSteps(net)) {
    LOG(INFO) << (step.is_backward ? "B " : "F ") << step.layers << ": " << step.op << " by "
              << step.kernel;
    for (const std::string& refusal : step.refusals) LOG(INFO) << "    not " << refusal;
  }
}

// Passes until a GPU has recorded its steps and its clocks are up.
constexpr int kWarmUps = 3;

int Time() {
  Require(!FLAGS_model.empty(), "-model is missing; give the net prototxt");
  Require(FLAGS_iterations > 0, "-iterations is ", FLAGS_iterations, "; it must be at least 1");
  UseDevice();
  const bool is_training = PhaseFromFlag() == caffe::TRAIN;
  Net net(FLAGS_model, PhaseFromFlag(), FLAGS_level, SplitByComma(FLAGS_stage),
          NetOptionsFromFlags(is_training));
  if (FLAGS_explain) LogSteps(net);
  LOG(INFO) << "Performing Forward";
  float initial_loss = 0;
  net.Forward(&initial_loss);
  LOG(INFO) << "Initial loss: " << initial_loss;
  if (!is_training) {
    LOG(INFO) << "A net of the TEST phase is compiled without backward; -phase TRAIN times both";
  }
  LOG(INFO) << "Performing Backward";
  net.Backward();
  LOG(INFO) << "*** Benchmark begins ***";
  LOG(INFO) << "Testing for " << FLAGS_iterations << " iterations.";
  const auto log_iteration = [](int i, double milliseconds) {
    LOG(INFO) << "Iteration: " << i + 1 << " forward-backward time: " << milliseconds << " ms.";
  };
  // A GPU replays whole passes, but times its steps one by one: first the passes, then the steps.
  const bool is_gpu = caffe::Caffe::mode() == caffe::Caffe::GPU;
  for (int i = -kWarmUps; is_gpu && i < FLAGS_iterations; ++i) {
    const double milliseconds = Milliseconds([&] {
      net.LaunchForwardBackward();
      net.AwaitLoss();
    });
    if (i >= 0) log_iteration(i, milliseconds);
  }
  caffe::SetProfiling(net, true);
  double forward = 0, backward = 0;
  const double total = Milliseconds([&] {
    for (int i = 0; i < FLAGS_iterations; ++i) {
      const double up = Milliseconds([&] { net.Forward(); });
      const double down = Milliseconds([&] { net.Backward(); });
      forward += up;
      backward += down;
      if (!is_gpu) log_iteration(i, up + down);
    }
  });
  LOG(INFO) << "Average time per layer: ";
  for (const caffe::LayerTime& time : caffe::LayerTimes(net)) {
    const auto line = [&](const char* direction, double milliseconds) {
      std::ostringstream name;
      name.width(10);
      name << time.layer;
      LOG(INFO) << name.str() << "\t" << direction << ": " << milliseconds / FLAGS_iterations
                << " ms.";
    };
    line("forward", time.forward_ms);
    line("backward", time.backward_ms);
  }
  LOG(INFO) << "Average Forward pass: " << forward / FLAGS_iterations << " ms.";
  LOG(INFO) << "Average Backward pass: " << backward / FLAGS_iterations << " ms.";
  LOG(INFO) << "Average Forward-Backward: " << (forward + backward) / FLAGS_iterations << " ms.";
  LOG(INFO) << "Total Time: " << total << " ms.";
  LOG(INFO) << "*** Benchmark ends ***";
  return 0;
}

// The chip that a plan is for when it need not be there; empty where -gpu means this machine's GPU
// or the CPU. A machine without a GPU plans for kAssumedChip.
constexpr const char* kAssumedChip = "H200";
std::string DescribedChip() {
  if (FLAGS_gpu.empty()) return "";
  if (FLAGS_gpu.find_first_not_of("0123456789") != std::string::npos) return FLAGS_gpu;
  try {
    if (caffe::NumGpus() > 0) return "";
    LOG(WARNING) << "This machine has no GPU: the plan is for an " << kAssumedChip;
  } catch (const caffe::DeviceError& error) {
    LOG(WARNING) << error.what() << ". The plan is for an " << kAssumedChip;
  }
  return kAssumedChip;
}

int Plan() {
  Require(FLAGS_model.empty() != FLAGS_solver.empty(),
          "plan needs -model (a net prototxt) or -solver (whose net is planned as it trains), not "
          "both");
  const bool is_training = PhaseFromFlag() == caffe::TRAIN;
  caffe::NetOptions options = NetOptionsFromFlags(is_training);
  options.allocate = false;
  options.described_device = DescribedChip();
  if (!FLAGS_gpu.empty() && options.described_device.empty()) UseDevice();
  std::unique_ptr<Net> net;
  if (FLAGS_solver.empty()) {
    net = std::make_unique<Net>(FLAGS_model, PhaseFromFlag(), FLAGS_level,
                                SplitByComma(FLAGS_stage), options);
  } else {
    const caffe::SolverParameter solver = SolverFromFlags();
    options.precision = solver.precision();
    net = caffe::MakeTrainNet(solver, options);
  }
  const int solver_states =
      FLAGS_solver.empty() ? 0 : caffe::SolverStatesPerParameter(SolverFromFlags());
  std::cout << (FLAGS_json ? caffe::FormatPlanJson(*net, solver_states)
                           : caffe::FormatPlan(*net, solver_states));
  return 0;
}

// Measures the input pipeline of each Data layer, without a net behind it.
int DataBench() {
  Require(!FLAGS_model.empty(), "-model is missing; give a net prototxt with a Data layer");
  Require(FLAGS_seconds > 0, "-seconds is ", FLAGS_seconds, "; it must be positive");
  caffe::NetParameter param = caffe::ReadNetText(FLAGS_model);
  param.mutable_state()->set_phase(PhaseFromFlag());
  param.mutable_state()->set_level(FLAGS_level);
  for (const std::string& stage : SplitByComma(FLAGS_stage))
    param.mutable_state()->add_stage(stage);
  const caffe::NetParameter filtered = Net::FilterNet(param);
  bool has_data = false;
  for (const caffe::LayerParameter& layer : filtered.layer()) {
    if (layer.type() != "Data") continue;
    has_data = true;
    const caffe::data::PipelineSpeed speed =
        caffe::data::MeasurePipeline({.data = layer.data_param(),
                                      .transform = layer.transform_param(),
                                      .train = PhaseFromFlag() == caffe::TRAIN,
                                      .layer = layer.name()},
                                     FLAGS_seconds);
    if (FLAGS_json) {
      std::cout << speed.ToJson() << "\n";
      continue;
    }
    std::cout << "layer '" << layer.name() << "': " << layer.data_param().source() << ", "
              << speed.records << " records of " << speed.bytes_per_record << " bytes, images "
              << speed.image << ", batch " << speed.batch_size << "\n";
    const auto line = [](const char* stage, double rate) {
      std::cout << "  " << std::left << std::setw(36) << stage << std::right << std::setw(12)
                << std::fixed << std::setprecision(0) << rate << " images/s\n";
    };
    line("read (1 thread)", speed.read);
    line("read and parse or decode (1 thread)", speed.parse);
    line("all of it (1 thread)", speed.transform);
    line(caffe::StrCat("pipeline (", speed.threads, " threads)").c_str(), speed.pipeline);
    if (speed.jpeg_decode > 0) line("libjpeg-turbo alone (1 thread)", speed.jpeg_decode);
  }
  Require(has_data, FLAGS_model, ": the net has no Data layer in phase ",
          caffe::Phase_Name(PhaseFromFlag()));
  return 0;
}

int DeviceQuery() {
  if (FLAGS_gpu.empty()) {
    LOG(INFO) << "Device: " << caffe::DescribeCpu();
    return 0;
  }
  const std::vector<int> gpus = GpusFromFlag();
  const std::vector<std::string> descriptions = DescribeGpus(gpus);
  LOG(INFO) << "Querying GPUs " << FLAGS_gpu;
  for (size_t i = 0; i < gpus.size(); ++i)
    LOG(INFO) << "Device " << gpus[i] << ": " << descriptions[i];
  return 0;
}

// What follows the command: the layer type of `caffe layers Convolution`.
std::string argument;

int Layers() {
  std::cout << (argument.empty() ? caffe::FormatLayerTypes() : caffe::FormatLayerType(argument));
  return 0;
}

struct Command {
  int (*run)();
  const char* help;
};

const std::map<std::string, Command>& Commands() {
  static const std::map<std::string, Command> commands = {
      {"train", {Train, "train or finetune a model"}},
      {"test", {Test, "score a model"}},
      {"test_detection", {TestDetection, "score a detector: mean average precision"}},
      {"time", {Time, "measure a model's time per layer"}},
      {"plan", {Plan, "print what a model will run and how much memory it takes"}},
      {"data-bench", {DataBench, "measure the input pipeline alone, stage by stage"}},
      {"layers", {Layers, "list the layer types, or the options of one: caffe layers Convolution"}},
      {"device_query", {DeviceQuery, "show this machine's devices"}},
  };
  return commands;
}

std::string Usage() {
  std::string text = "caffe <command> <flags>\n\ncommands:\n";
  for (const auto& [name, command] : Commands()) {
    text += "  " + name + std::string(17 - name.size(), ' ') + command.help + "\n";
  }
  return text;
}

int RunCommand(const std::string& name) {
  const auto found = Commands().find(name);
  if (found == Commands().end()) {
    LOG(ERROR) << "Available caffe actions:";
    for (const auto& [known, command] : Commands()) LOG(ERROR) << "\t" << known;
    LOG(ERROR) << "Unknown action: " << name;
    return 1;
  }
  try {
    return found->second.run();
  } catch (const std::bad_alloc&) {
    LOG(ERROR)
        << "caffe " << name
        << ": the machine's memory is used up; lower batch_size or prefetch (caffe plan shows "
           "what a net needs)";
    return 1;
  } catch (const std::exception& error) {
    LOG(ERROR) << "caffe " << name << ": " << error.what();
    return 1;
  }
}

// OpenMP's threads wait for each other many times in an iteration. With g++'s default they spin
// meanwhile, so that any other load on the machine (data threads, a compiler) slows small nets
// tenfold; asleep they cost nothing measurable. The runtime reads the setting when it is loaded,
// hence the second start of the program.
void WaitPassively(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  setenv("OMP_WAIT_POLICY", "passive", /*overwrite=*/0);
  execv("/proc/self/exe", argv);  // returns only on failure, which costs speed and nothing else
}

}  // namespace

int main(int argc, char** argv) {
  WaitPassively(argv);
  const bool has_arguments = argc > 1;  // before the flags among them are taken away
  FLAGS_alsologtostderr = true;
  // Programs that read Caffe's logs expect "I0210 13:39:22", which newer glogs put a year into.
  gflags::SetCommandLineOptionWithMode("log_year_in_prefix", "false", gflags::SET_FLAGS_DEFAULT);
  gflags::SetVersionString(caffe::Version());
  gflags::SetUsageMessage(Usage());
  gflags::ParseCommandLineFlags(&argc, &argv, /*remove_flags=*/true);
  FLAGS_logtostderr = FLAGS_alsologtostderr;
  google::InitGoogleLogging(argv[0]);
  if (!has_arguments) {
    std::cout << Usage() << "\nflags: caffe --help\n";
    return 0;
  }
  if (argc < 2) {
    LOG(ERROR)
        << "caffe: there are flags but no command; give one, as in caffe train --solver=FILE";
    return 1;
  }
  const int arguments = std::string(argv[1]) == "layers" ? 1 : 0;
  if (argc > 2 + arguments) {
    LOG(ERROR)
        << "caffe " << argv[1] << ": '" << argv[2 + arguments]
        << "' is neither a flag nor its value; flags begin with a dash, lists have no spaces";
    return 1;
  }
  if (argc == 3) argument = argv[2];
  return RunCommand(argv[1]);
}
