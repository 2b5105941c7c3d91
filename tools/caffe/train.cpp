// caffe train: trains or finetunes a model.
#include <glog/logging.h>

#include <iostream>
#include <memory>
#include <optional>

#include "caffe/error.hpp"
#include "caffe/live_line.hpp"
#include "caffe/ranks.hpp"
#include "caffe/solver.hpp"
#include "caffe/solver_factory.hpp"
#include "caffe/solver_group.hpp"
#include "caffe/split_choice.hpp"
#include "caffe/training_plan.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/devices.hpp"
#include "tools/caffe/model_folder.hpp"
#include "tools/caffe/options.hpp"
#include "tools/caffe/rank_options.hpp"
#include "tools/caffe/run_dir.hpp"
#include "tools/caffe/signals.hpp"
#include "tools/caffe/trace_file.hpp"
#include "tools/caffe/watchdog_options.hpp"

namespace caffe::tools {
namespace {

class Train : public Command {
 public:
  explicit Train(CLI::App& app) {
    AddSolver(app, &solver_);
    app.add_option("--snapshot", snapshot_, "The snapshot to resume training from")
        ->type_name("FILE.solverstate");
    app.add_flag("--auto_resume", auto_resume_,
                 "Resume from the newest snapshot of this solver, if there is one");
    AddWeights(app, &weights_);
    AddGpu(
        app, &gpu_,
        "The GPUs to train on, by number separated by commas, or 'all'; one of several processes "
        "takes the one of its own number among those of its machine");
    app.add_option("--workers", workers_,
                   "Copies of the net that train together on the CPU, each on its part of the data "
                   "and of the processor")
        ->type_name("N");
    ranks_.Add(app);
    AddParallel(app, &parallel_);
    net_flags_.AddState(app);
    net_flags_.AddForeign(app);
    net_flags_.AddPrecision(app);
    net_flags_.AddCalibration(app);
    net_flags_.AddMemoryLimit(app);
    net_flags_.AddOverrides(app, "base_lr=0.1 or layer[conv1].convolution_param.num_output=32");
    effects_.Add(app);
    watchdog_.Add(app);
    app.add_option("--trace", trace_,
                   "Where to write a timeline, for chrome://tracing or ui.perfetto.dev")
        ->type_name("FILE");
    run_dir_.Add(app);
  }

  void Run() override {
    AwaitSolver(effects_);
    Require(!solver_.empty(), "--solver is missing; give a model's folder, or a solver prototxt");
    Require(
        snapshot_.empty() || weights_.empty(),
        "--snapshot and --weights are both given; give a snapshot to resume training or weights "
        "to finetune, not both");
    Require(snapshot_.empty() || !auto_resume_,
            "--snapshot and --auto_resume are both given; --auto_resume finds the snapshot itself");
    TakeFolder();
    std::string net_file;
    SolverParameter param = net_flags_.ReadSolver(solver_, &net_file);
    std::optional<RankOptions> ranks = ranks_.Options();
    const int rank = ranks ? ranks->rank : 0;
    if (ranks) CheckRanks();
    LogAsRank(rank);
    if (auto_resume_) FindSnapshot(param);
    watchdog_.PutInto(&param);
    TakeDeviceFrom(param, ranks.has_value());
    Require(
        gpu_.empty() || workers_ == 1,
        "--gpu and --workers are both given; --workers trains copies on the CPU, --gpu 0,1 one on "
        "each GPU");
    if (!weights_.empty() && snapshot_.empty()) param.add_weights(weights_);
    TraceFile file(FileOfRank(trace_, rank));
    Require(
        trace_.empty() || !run_dir_.is_given(),
        "--run_dir and --trace are both given; the run's folder has the timeline, in trace.json");
    std::unique_ptr<RunFolder> run;
    if (rank == 0) run = run_dir_.Open(/*resumes=*/!snapshot_.empty());
    try {
      Optimize(param, net_file, ranks, run ? run->trace() : file.trace(), run.get());
    } catch (const std::exception& error) {
      if (run) run->Fail(error.what());
      throw;
    }
    const bool can_be_evaluated = !folder_.empty() && !param.metric().empty();
    if (can_be_evaluated && rank == 0) std::cout << "\nnext:  caffe evaluate " << folder_ << "\n";
  }

 private:
  void Optimize(const SolverParameter& param, const std::string& net_file,
                std::optional<RankOptions> ranks, Trace* trace, RunFolder* run) {
    const int rank = ranks ? ranks->rank : 0;
    SolverOptions options{.keep_all = false,
                          .file = solver_,
                          .net_file = net_file,
                          .lenient = net_flags_.lenient,
                          .trace = trace,
                          .give_up = EndHangingRun,
                          .logs_definitions = folder_.empty()};
    if (parallel_ == "auto") options.split_layers = ChooseSplitLayers(param, ranks, options);
    std::vector<int> gpus = ParseGpus(gpu_);
    if (ranks && !gpus.empty()) {
      gpus = {gpus[static_cast<size_t>(ranks->local_rank) % gpus.size()]};
      ranks->gpu = options.gpu = gpus[0];
    }
    gpus.empty() ? UseCpu() : UseGpus(gpus);
    LiveLine line;
    const auto prepare = [&](Solver& solver) {
      HandleSignals(effects_, solver);
      if (rank == 0) solver.AddObserver(&line);
      if (run) solver.AddObserver(run);
      LOG(INFO) << "Starting Optimization";
    };
    if (ranks) {
      const TraceRow row(options.trace, rank, "compute");
      options.communicator = JoinRanks(*ranks);
      Solver solver(param, options);
      prepare(solver);
      const bool is_found_by_another = auto_resume_ && rank != 0;  // rank 0 chooses the snapshot
      return solver.Solve(is_found_by_another ? "" : snapshot_);
    }
    SolverGroup group =
        gpus.empty() ? SolverGroup(param, options, workers_) : SolverGroup(param, options, gpus);
    prepare(group.solver(0));
    group.Solve(snapshot_);
  }

  // For a model's folder, takes its solver and numbers its runs; resumes a run that was started.
  void TakeFolder() {
    const std::string given = solver_;
    const bool is_folder =
        EnterFolderOfSolver(&solver_, {&snapshot_, &trace_, run_dir_.folder()}, &weights_);
    if (!is_folder) return;
    folder_ = given;
    auto_resume_ = auto_resume_ || (snapshot_.empty() && weights_.empty());
    run_dir_.NumberRuns("runs");
  }

  // As in Caffe, --gpu takes precedence over the solver's solver_mode. With several processes, each
  // takes the GPU of its local rank on its machine.
  void TakeDeviceFrom(const SolverParameter& param, bool is_one_of_several) {
    const bool wants_gpu =
        gpu_.empty() && param.has_solver_mode() && param.solver_mode() == SolverParameter::GPU;
    if (!wants_gpu) return;
    Require(workers_ == 1, solver_, ": solver_mode is GPU, but --workers is ", workers_,
            ", which trains copies on the CPU; set solver_mode: CPU, or give --gpu 0,1 in place of "
            "--workers for a copy on each GPU");
    gpu_ = is_one_of_several ? "all" : std::to_string(param.device_id());
  }

  // Runs before anything is built, with the same result on all ranks.
  std::vector<std::string> ChooseSplitLayers(const SolverParameter& param,
                                             const std::optional<RankOptions>& ranks,
                                             const SolverOptions& options) const {
    Require(gpu_.empty(), "--parallel is auto, but layers are split over ranks on the CPU only; ",
            "leave out --parallel, or --gpu and solver_mode: GPU");
    const int of_all = ranks ? ranks->ranks : workers_;
    UseCpu();
    const TrainingPlan plan(param, {.keep_all = false, .lenient = options.lenient});
    const std::vector<SplitChoice> choices =
        ChooseSplits(plan.train_net(), of_all, /*by_cost=*/true, plan.passes());
    LOG_IF(INFO, !ranks || ranks->rank == 0) << FormatSplits(choices, of_all);
    return SplitLayersOf(choices);
  }

  void FindSnapshot(const SolverParameter& param) {
    snapshot_ = NewestSnapshot(param, solver_);
    if (!snapshot_.empty()) return;
    // Training from scratch would replace the best model of an earlier training.
    const std::string found = BestWeights(param, solver_);
    const bool is_best =
        found.ends_with("_best.caffemodel") || found.ends_with("_best.caffemodel.h5");
    Require(!weights_.empty() || !is_best, found,
            ": is the best model of an earlier training, which has left no whole state "
            "(.solverstate) to resume from; move the file away to train from scratch, or start "
            "with its weights: --weights=",
            found);
    LOG(INFO) << "No snapshot of " << solver_ << " yet; starting from scratch";
  }

  void CheckRanks() const {
    Require(workers_ == 1, "--workers is ", workers_,
            ", but several processes train together; start one for each copy of the net instead");
  }

  std::string folder_;  // of a model, if given; its runs' folders have the definitions
  std::string solver_, snapshot_, weights_, gpu_, trace_, parallel_ = "none";
  bool auto_resume_ = false;
  int workers_ = 1;
  RankFlags ranks_;
  NetFlags net_flags_;
  SignalEffects effects_;
  WatchdogOptions watchdog_;
  RunDirFlags run_dir_;
};

const CommandRegistrar<Train> train_registrar(
    "train", {.purpose = Purpose::kTrain,
              .summary = "train or finetune a model",
              .about = "Trains the net that a solver prototxt names, from scratch, from weights or "
                       "from a snapshot.",
              .examples = "caffe train photos_model\n"
                          "caffe train solver.prototxt\n"
                          "caffe train solver.prototxt --weights=pretrained.caffemodel --gpu=0 "
                          "--set base_lr=0.001"});

}  // namespace
}  // namespace caffe::tools
