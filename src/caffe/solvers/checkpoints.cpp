#include "caffe/solvers/checkpoints.hpp"

#include <utility>
#include <vector>

#include "caffe/core/activity.hpp"
#include "caffe/error.hpp"
#include "caffe/solvers/non_finite.hpp"
#include "caffe/solvers/run_identity.hpp"
#include "caffe/solvers/snapshot.hpp"
#include "caffe/solvers/snapshot_files.hpp"
#include "caffe/solvers/solver_lines.hpp"
#include "caffe/trace.hpp"

namespace caffe {

Checkpoints::Checkpoints(const SolverContext& context)
    : context_(context), prefix_(SnapshotPrefix(context.param, context.options.file)) {}

void Checkpoints::CheckWritable(const History& history) {
  if (!context_.parallel.is_root()) return;
  CheckSnapshotWritable(context_.param, context_.options.file);
  CheckSize(history);
  LockPrefix();
}

void Checkpoints::LockPrefix() {
  if (!context_.parallel.is_root() || (lock_ && lock_->is_of_this_process())) return;
  lock_.emplace(prefix_);
}

void Checkpoints::CheckSize(const History& history) const {
  if (context_.param.snapshot_format() == SolverParameter::HDF5) return;
  const auto bytes_of = [](const Blob& blob) { return blob.data_tensor().desc().bytes(); };
  uint64_t weight_bytes = 0, history_bytes = 0;
  for (const Net::LearnableParam& one : context_.net.learnable_params())
    weight_bytes += bytes_of(*one.blob) * (context_.param.snapshot_diff() ? 2 : 1);
  for (const std::shared_ptr<Blob>& blob : history) history_bytes += bytes_of(*blob);
  if (context_.param.ema_decay() > 0) {  // the state contains the parameters, too
    for (const Net::LearnableParam& one : context_.net.learnable_params())
      history_bytes += bytes_of(*one.blob);
  }
  CheckSnapshotFits(weight_bytes, history_bytes);
}

void Checkpoints::AgreeOnWeights(int iteration) const {
  if (context_.parallel.spans_processes())
    context_.parallel.Agree(FactsAboutWeights(iteration, context_.net));
}

bool Checkpoints::IsDue(int iteration) const {
  return context_.param.snapshot() > 0 && iteration % context_.param.snapshot() == 0;
}

void Checkpoints::CheckWeights(int iteration, bool has_updated) const {
  const std::string found = DescribeNonFiniteWeights(context_, has_updated);
  if (found.empty()) return;
  throw Error(StrCat("solver: no snapshot of iteration ", iteration, " is written: ", found,
                     AboutLastSnapshot(last_)));
}

std::string Checkpoints::Write(const History& history, SolverProgress progress,
                               const std::function<void()>& check) {
  const int iteration = progress.iter;
  if (!context_.parallel.is_root()) {
    if (check) check();
    last_ = iteration;
    return "";
  }
  std::string file = WriteTo(SnapshotStem(prefix_, iteration), history, std::move(progress), check);
  last_ = iteration;
  RemoveOlder(file);
  return file;
}

void Checkpoints::WriteBest(const History& history, SolverProgress progress) {
  if (context_.parallel.is_root()) WriteTo(BestStem(prefix_), history, std::move(progress), {});
}

std::string Checkpoints::WriteTo(const std::string& stem, const History& history,
                                 SolverProgress progress, const std::function<void()>& check) {
  const int iteration = progress.iter;
  const TraceSpan span("snapshot");
  const Activity writing("snapshot", "writes", prefix_);
  const TrainingProgress::Pause pause(context_.reporter);
  const SnapshotOptions options = {
      .stem = stem,
      .as_hdf5 = context_.param.snapshot_format() == SolverParameter::HDF5,
      .with_gradients = context_.param.snapshot_diff(),
      .check = check};
  progress.solver = SolverIdentity(context_.param);
  progress.net_hash = NetIdentity(context_.net);
  std::string file = WriteSnapshot(options, context_.net, history, std::move(progress));
  context_.reporter.Report(SnapshotReport{iteration, file});
  return file;
}

// Failing to remove a file must not end training.
void Checkpoints::RemoveOlder(const std::string& newest) {
  const auto most = static_cast<size_t>(context_.param.keep_snapshots());
  if (most == 0) return;
  std::erase(kept_, newest);  // if written again after a resume
  kept_.push_back(newest);
  while (kept_.size() > most) {
    try {
      RemoveSnapshot(kept_.front());
      SOLVER_LINE(INFO) << "Removed snapshot " << kept_.front() << " (keep_snapshots: " << most
                        << ")";
    } catch (const IoError& error) {
      SOLVER_LINE(WARNING) << error.what() << "; training goes on";
    }
    kept_.pop_front();
  }
}

void Checkpoints::TakeUp(const SolverProgress& progress) {
  last_ = progress.iter;
  if (!context_.parallel.is_root() || context_.param.keep_snapshots() == 0) return;
  const std::vector<std::string> own = SnapshotsOfRun(prefix_, progress);
  kept_.assign(own.begin(), own.end());
}

void Checkpoints::SayWhatDiffers(const SolverProgress& progress, const std::string& file) const {
  if (!context_.parallel.is_root()) return;
  const auto warn = [&](const std::string& what) {
    SOLVER_LINE(WARNING) << file << " is of another run: " << what;
  };
  const int64_t seed = context_.param.random_seed();
  if (seed >= 0 && progress.has_seed && progress.seed != static_cast<uint64_t>(seed)) {
    warn(
        StrCat("its random_seed ", progress.seed, " goes on to be used, not this solver's ", seed));
  }
  if (progress.solver.empty()) return;  // from another program, or an earlier version
  const std::string solver = DifferencesOf(SolverIdentity(context_.param), progress.solver);
  if (!solver.empty()) warn(StrCat("this solver has ", solver));
  if (progress.net_hash != NetIdentity(context_.net)) {
    warn(StrCat("it trained net '", progress.net_name, "' by another definition"));
  }
}

}  // namespace caffe
