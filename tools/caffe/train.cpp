// caffe train: trains or finetunes a model.
#include <glog/logging.h>

#include <optional>

#include "caffe/error.hpp"
#include "caffe/solver_group.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/devices.hpp"
#include "tools/caffe/flags.hpp"
#include "tools/caffe/signals.hpp"
#include "tools/caffe/trace_file.hpp"

DEFINE_string(snapshot, "", "The .solverstate to resume training from (train).");
DEFINE_int32(workers, 1,
             "Copies of the net that train together, each on its part of the data and of the "
             "processor (train).");
DEFINE_string(trace, "",
              "File to write a timeline to, for chrome://tracing or ui.perfetto.dev (train).");

namespace caffe::tools {
namespace {

// As in Caffe, -gpu takes precedence over the solver's solver_mode.
void TakeDeviceFrom(const SolverParameter& param) {
  const bool wants_gpu =
      FLAGS_gpu.empty() && param.has_solver_mode() && param.solver_mode() == SolverParameter::GPU;
  if (!wants_gpu) return;
  Require(FLAGS_workers == 1, FLAGS_solver, ": solver_mode is GPU, but -workers is ", FLAGS_workers,
          ", which trains copies on the CPU; set solver_mode: CPU, or give -gpu 0,1 in place of "
          "-workers for a copy on each GPU");
  FLAGS_gpu = std::to_string(param.device_id());
}

void Train(const std::string&) {
  Require(FLAGS_snapshot.empty() || FLAGS_weights.empty(),
          "-snapshot and -weights are both given; give a snapshot to resume training or weights to "
          "finetune, "
          "not both");
  SolverParameter param = SolverFromFlags();
  TakeDeviceFrom(param);
  Require(FLAGS_gpu.empty() || FLAGS_workers == 1,
          "-gpu and -workers are both given; -workers trains copies on the CPU, -gpu 0,1 one on "
          "each GPU");
  if (!FLAGS_weights.empty()) param.add_weights(FLAGS_weights);
  TraceFile file(FLAGS_trace);
  const SolverOptions options{.keep_all = false, .file = FLAGS_solver, .trace = file.trace()};
  const std::vector<int> gpus = GpusFromFlag();
  std::optional<SolverGroup> group;
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
}

const CommandRegistrar registrar("train", {.help = "train or finetune a model", .run = Train});

}  // namespace
}  // namespace caffe::tools
