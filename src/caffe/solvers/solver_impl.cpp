#include "caffe/solvers/solver_impl.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "caffe/common.hpp"
#include "caffe/core/activity.hpp"
#include "caffe/device/device_fault.hpp"
#include "caffe/error.hpp"
#include "caffe/solver_factory.hpp"
#include "caffe/solvers/content_facts.hpp"
#include "caffe/solvers/log_net.hpp"
#include "caffe/solvers/schedule.hpp"
#include "caffe/solvers/snapshot_files.hpp"
#include "caffe/solvers/solver_checks.hpp"
#include "caffe/solvers/solver_lines.hpp"
#include "caffe/solvers/solver_nets.hpp"

namespace caffe {
namespace {

constexpr int kActions = 3;  // number of values of SolverAction

}  // namespace

Solver::Impl::Impl(const SolverParameter& solver_param, const SolverOptions& solver_options)
    : param(solver_param),
      options(solver_options),
      parallel(solver_options.communicator, solver_options.trace) {
  parallel.UseShareOfThreads();
  CheckSolver(param);
  if (parallel.is_root() && options.logs_definitions) LogSolver(param);
  rule = MakeUpdateRule(param);
  const bool snapshots = (param.snapshot() > 0 || !param.metric().empty()) && parallel.is_root();
  if (snapshots) CheckSnapshotWritable(param, options.file);
  seed = param.random_seed() >= 0 ? static_cast<uint64_t>(param.random_seed()) : Caffe::NextSeed();
  seed = std::stoull(parallel.BroadcastFromRoot(std::to_string(seed)));
  const NetOptions train = BuildTrainNet();
  length.emplace(param, *net, parallel.ranks());
  param = length->Resolved();
  if (param.has_max_epoch()) {
    CheckScheduleLength(param);
    SOLVER_LINE_IF(INFO, parallel.is_root()) << length->Describe();
  }
  training_net.emplace(*net);
  reporter.emplace(*net, param.iter_size() * parallel.ranks());
  context.emplace(
      SolverContext{param, options, *net, *training_net, parallel, *reporter, callbacks});
  tests.emplace(*context, train);
  CheckTrainable(*net, /*needs_loss=*/!options.keep_all);
  if (parallel.is_root()) CheckStatistics(param, *net);
  if (param.watchdog() == "abort") whole.emplace(*training_net);
  parallel.Attach(*net);
  checkpoints.emplace(*context);
  iteration.emplace(*context, *rule, *checkpoints);
  split.emplace(
      *net, history(), param.snapshot_diff(),
      [this](const SplitParam& one, SyncedTensor* tensor) { parallel.GatherParts(one, tensor); });
  if (split->are_there()) CheckSplitTraining(param, rule->needs_whole_parameters());
  if (parallel.is_root()) {
    log.emplace(TrainingLogOptions{.display = param.display(),
                                   .test_loss = param.test_compute_loss(),
                                   .per_class = param.show_per_class_result()});
    reporter->Add(&*log);
  }
  if (snapshots) checkpoints->CheckSize(history());
  for (const std::string& weights : param.weights()) LoadWeights(weights, net.get());
  if (!parallel.spans_processes()) return;
  // All processes must train the same net from the same weights.
  std::vector<Fact> facts = FactsAboutStart(param, *net);
  std::vector<const Net*> nets = {net.get()};
  for (const std::shared_ptr<Net>& test_net : tests->nets()) nets.push_back(test_net.get());
  facts.push_back(FactAboutContent(param, nets));
  parallel.Agree(facts);
  if (!parallel.TakeFromRoot(WeightTensors(*net))) return;
  SOLVER_LINE(WARNING) << "solver: the weights of rank " << parallel.rank()
                       << " were not those of rank 0, which are taken";
}

NetOptions Solver::Impl::BuildTrainNet() {
  NetOptions train;
  train.gpu = options.gpu;
  train.lenient = options.lenient;
  train.file = options.net_file;
  train.keep_all = options.keep_all || param.debug_info();
  train.seed = seed;
  train.rank = parallel.rank();
  train.ranks = parallel.ranks();
  train = TrainNetOptions(param, train, SolverStatesPerParameter(param));
  net = MakeTrainNet(param, train, [this](NetParameter* definition) {
    for (LayerParameter& layer : *definition->mutable_layer()) {
      if (std::ranges::count(options.split_layers, layer.name()) > 0)
        layer.set_parallel(LayerParameter::SPLIT_OUTPUT);
    }
  });
  if (parallel.is_root()) {
    const auto log = options.logs_definitions ? LogNet : LogSizeOfNet;
    log(*net, SourceOfTrainNet(param), SolverStatesPerParameter(param));
  }
  return train;
}

void Solver::Impl::Step(int iterations, bool ends_solve) {
  const int64_t stop = int64_t{iter()} + iterations;
  iteration->BeginRun();
  tests->choice().BeginRun();
  standing.stop_requested = false;
  while (iter() < stop) {
    const std::string number = std::to_string(iter());
    const Activity iterating("compute", "computes iteration", number);
    if (whole) whole->Begin();
    if (length->IsTestDue(iter()) && (iter() > 0 || param.test_initialization())) {
      if (!TestAll(/*chooses=*/true) || tests->choice().has_ended()) break;
    }
    for (const Callbacks& callback : callbacks) {
      if (callback.on_start) callback.on_start();
    }
    split->BeginStep();
    iteration->Run();
    if (whole) whole->End();
    const std::string waits = parallel.ReportWaits(iter());
    SOLVER_LINE_IF(INFO, !waits.empty()) << waits;
    const SolverAction::Enum action = Poll();
    const bool is_left = ends_solve && iter() == stop;
    if ((checkpoints->IsDue(iter()) && !is_left) || action == SolverAction::SNAPSHOT) {
      iteration->Finish();
      split->GatherAll();
      checkpoints->AgreeOnWeights(iter());
      SnapshotOnAllRanks();
    }
    standing.stop_requested = action == SolverAction::STOP;
    if (standing.stop_requested) break;
  }
  iteration->Finish();
  split->GatherAll();
}

bool Solver::Impl::TestAll(bool chooses) {
  split->GatherWeights();
  WeightAverage* const average = iteration->updates().updater().average();
  const Moment moment = {iter(), iteration->has_updated(), checkpoints->last()};
  std::optional<std::vector<TestReport>> reports;
  {
    const WeightAverage::Shown shown(average);
    reports = tests->Run(moment, [&] {
      const SolverAction::Enum action = Poll();
      if (action == SolverAction::SNAPSHOT) {
        split->GatherAll();
        SnapshotOnAllRanks();
      }
      return standing.stop_requested = action == SolverAction::STOP;
    });
  }
  if (!reports) return false;
  if (!chooses || !tests->choice().Take(iter(), *reports)) return true;
  iteration->Finish();
  split->GatherAll();
  checkpoints->AgreeOnWeights(iter());
  SnapshotOnAllRanks(/*is_best=*/true);
  return true;
}

SolverAction::Enum Solver::Impl::Poll() {
  if (watchdog) watchdog->ThrowIfAborted();
  const bool asks = action_function && parallel.leads_process();
  std::array<double, kActions> ranks{};  // that request each action
  ranks[asks ? action_function() : SolverAction::NONE] = 1;
  parallel.Sum(ranks);
  // A signal may reach only one process, or some before others.
  if (ranks[SolverAction::STOP] > 0) return SolverAction::STOP;
  return ranks[SolverAction::SNAPSHOT] > 0 ? SolverAction::SNAPSHOT : SolverAction::NONE;
}

SolverProgress Solver::Impl::Progress() const {
  SolverProgress progress;
  iteration->Describe(&progress);
  tests->Describe(iter(), &progress);
  progress.solver_type = param.type();
  progress.net_name = net->name();
  progress.seed = seed;
  progress.delivered_records =
      whole ? whole->delivered_records() : training_net->delivered_records();
  return progress;
}

std::string Solver::Impl::Snapshot() {
  CheckWhole();
  checkpoints->CheckWeights(iter(), iteration->has_updated());
  return WriteSnapshot();
}

std::string Solver::Impl::WriteSnapshot(bool is_best, const std::function<void()>& check) {
  WeightAverage* const average = iteration->updates().updater().average();
  const WeightAverage::Hidden within_a_test(average);
  SolverProgress progress = Progress();
  const WeightAverage::Shown shown(average);
  if (is_best) {
    checkpoints->WriteBest(history(), std::move(progress));
    return "";
  }
  std::function<void()> check_itself;
  if (check) {
    check_itself = [&] {
      const WeightAverage::Hidden hidden(average);
      check();
    };
  }
  return checkpoints->Write(history(), std::move(progress), check_itself);
}

// A snapshot takes memory on rank 0's GPU. Meanwhile no other GPU may wait for this one.
void Solver::Impl::SnapshotOnAllRanks(bool is_best) {
  SnapshotWhileTraining(is_best);
  if (!training_net->device()->is_host_accessible()) parallel.AwaitAllRanks();
}

void Solver::Impl::SnapshotWhileTraining(bool is_best) {
  try {
    CheckWhole();
    checkpoints->CheckWeights(iter(), iteration->has_updated());
    try {
      WriteSnapshot(is_best);
    } catch (const DeviceFault&) {  // training cannot continue without a device
      throw;
    } catch (const Error& error) {
      SOLVER_LINE(ERROR) << "Snapshot at iteration " << iter()
                         << " failed, training goes on: " << error.what();
    }
  } catch (const std::bad_alloc&) {
    SOLVER_LINE(ERROR) << "Snapshot at iteration " << iter()
                       << " failed, training goes on: not enough memory for a copy of the weights";
  }
}

void Solver::Impl::Restore(const std::string& file) {
  const SnapshotReader reader(file);
  const std::string weights = reader.WeightsFile();
  const SolverProgress& progress = reader.progress();
  Require(progress.solver_type.empty() || progress.solver_type == param.type(), file,
          ": was written by a solver of type '", progress.solver_type, "', this one is '",
          param.type(), "'; use the solver file of that run");
  Require(progress.net_name.empty() || progress.net_name == net->name(), file, ": belongs to net '",
          progress.net_name, "', this solver trains '", net->name(), "'");
  iteration->updates().CheckFits(reader, file);
  checkpoints->SayWhatDiffers(progress, file);
  // After a failure the nets may have lost their data, and cannot be queried.
  const bool moves_data =
      !standing.broken.empty() ||
      (progress.has_seed &&
       (progress.seed != seed || progress.delivered_records != training_net->delivered_records() ||
        !tests->AreAt(progress.test_positions)));
  standing.broken = "restoring a snapshot failed half-way; restore one before training goes on";
  if (moves_data) {
    if (progress.has_seed) seed = progress.seed;
    training_net->ResumeFrom(seed, progress.delivered_records);
    tests->ResumeFrom(seed, progress.test_positions);
  }
  if (!weights.empty()) net->CopyTrainedLayersFrom(weights);
  iteration->Restore(reader);
  tests->choice().Restore(progress);
  checkpoints->TakeUp(progress);
  if (parallel.spans_processes()) parallel.Agree(FactsAboutState(iter(), *net, history()));
  standing.restored_from = file;
  standing.broken.clear();
  split->MarkWhole();
}

void Solver::Impl::CheckWhole() const {
  Require(standing.broken.empty(), "solver: ", standing.broken);
  Require(split->are_whole(), "solver: after iteration ", iter(),
          " each rank has a part of the layers with parallel: SPLIT_OUTPUT, because training has "
          "failed; restore a snapshot");
}

void Solver::Impl::Observed(Solver* self, int stop, const std::function<void()>& train) {
  CheckWhole();
  parallel.UseShareOfThreads();
  if (parallel.leads_process() && (!watchdog || !IsOfThisProcess(watchdog))) {
    watchdog = MakeThreaded<Watchdog>(param, options.give_up);
  }
  if (param.snapshot() > 0 || tests->choice().is_on()) checkpoints->LockPrefix();
  reporter->Start({.solver = self,
                   .iteration = iter(),
                   .stop = stop,
                   .workers = parallel.ranks(),
                   .seed = seed,
                   .resumed_from = std::exchange(standing.restored_from, "")});
  parallel.LetLayersSum(true);
  try {
    train();
  } catch (const std::exception& error) {
    parallel.LetLayersSum(false);
    // If the device is lost, these calls fail too; keep the error that ended training.
    const auto try_to = [](const auto& work) {
      try {
        work();
      } catch (const DeviceError&) {
      }
    };
    if (whole) try_to([&] { whole->Restore(); });
    if (iteration->Break()) {
      standing.broken =
          StrCat("iteration ", iter(),
                 " failed while weights were being updated; restore a snapshot before "
                 "training goes on");
    }
    const std::string aborted = watchdog ? watchdog->reason() : "";
    try {  // a rank cannot write parts that were not gathered
      if (!aborted.empty()) SnapshotWhileTraining();
    } catch (const Error& failed) {
      SOLVER_LINE(ERROR) << failed.what();
    }
    watchdog.reset();
    reporter->End({iter(), TrainingEnd::kFailed, error.what()});
    if (!aborted.empty() && options.give_up) options.give_up(aborted);
    throw;
  }
  parallel.LetLayersSum(false);
  const TrainingEnd::Reason reason = standing.stop_requested       ? TrainingEnd::kStopped
                                     : tests->choice().has_ended() ? TrainingEnd::kEarlyStopping
                                                                   : TrainingEnd::kFinished;
  reporter->End({iter(), reason, ""});
}

void Solver::Impl::SolveFromHere() {
  SOLVER_LINE_IF(WARNING, parallel.is_root() && iter() > 0 && iter() >= param.max_iter())
      << "No iteration is left to train: this is iteration " << iter() << ", and max_iter is "
      << param.max_iter() << "; raise " << (param.has_max_epoch() ? "max_epoch" : "max_iter")
      << " to train further, in the solver or with --set "
      << (param.has_max_epoch() ? "max_epoch" : "max_iter") << "=N";
  const int begin = iter();
  Step(std::max(0, param.max_iter() - iter()), /*ends_solve=*/true);
  checkpoints->CheckWeights(iter(), iteration->has_updated());
  const bool is_whole = !standing.stop_requested && !tests->choice().has_ended();
  std::optional<float> loss;
  const auto look = [&] {
    if (is_whole && context->IsDisplayed(iter())) loss = iteration->LossOfWeights();
  };
  // Skipped if the snapshot of this iteration exists, which only rank 0 knows. Here a failed write
  // is an error of the run; no rank ends before the snapshot is written.
  const std::string is_there = "it is there";
  const bool is_due =
      param.snapshot_after_train() || (iter() > begin && checkpoints->IsDue(iter()));
  if (is_due &&
      parallel.BroadcastFromRoot(checkpoints->last() == iter() ? is_there : "") != is_there) {
    checkpoints->AgreeOnWeights(iter());
    CheckWhole();
    WriteSnapshot(/*is_best=*/false, look);
    parallel.BroadcastFromRoot(is_there);
  } else {
    look();
  }
  if (!is_whole) {
    SOLVER_LINE_IF(INFO, parallel.is_root() && !standing.stop_requested)
        << "Early stopping: " << tests->choice().WhyEnded();
    SOLVER_LINE_IF(INFO, parallel.is_root()) << "Optimization stopped early.";
    return;
  }
  if (loss) {
    iteration->loss().Add(*loss);
    SOLVER_LINE_IF(INFO, parallel.is_root())
        << "Iteration " << iter() << ", loss = " << iteration->loss().mean();
  }
  if (length->IsTestDue(iter())) TestAll(/*chooses=*/true);
  SOLVER_LINE_IF(INFO, parallel.is_root()) << "Optimization Done.";
}

}  // namespace caffe
