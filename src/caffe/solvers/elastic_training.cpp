#include "caffe/elastic_training.hpp"

#include <glog/logging.h>
#include <omp.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

#include "caffe/core/threads_for_now.hpp"
#include "caffe/distributed/communicator.hpp"
#include "caffe/error.hpp"
#include "caffe/solver_group.hpp"
#include "caffe/solvers/membership_log.hpp"
#include "caffe/solvers/snapshot.hpp"

namespace caffe {
namespace {

// What goes on from one loss to the next.
class Training {
 public:
  Training(const SolverParameter& param, const TrainingByRanks& training)
      : param_(param), training_(training) {}

  void Run() {
    std::shared_ptr<Communicator> communicator = JoinRanks(training_.ranks);
    while (!TrainToEnd(communicator)) {
      communicator = RejoinRanks(training_.ranks, std::move(communicator));
    }
  }

 private:
  // False where a rank has vanished, and the others can go on.
  bool TrainToEnd(const std::shared_ptr<Communicator>& communicator) {
    SolverOptions options = training_.solver;
    options.communicator = communicator;
    options.goes_back = is_elastic();
    std::unique_ptr<Solver> solver;
    bool is_restored = false;
    try {
      solver = std::make_unique<Solver>(param_, options);
      Restore(communicator.get(), solver.get());
      is_restored = true;
      if (training_.prepare) training_.prepare(*solver);
      if (is_elastic() && communicator->rank() == 0) {
        Note({solver->iter(), communicator->ranks(), why_});
      }
      solver->Solve();
      if (training_.finish) training_.finish(*solver);
      return true;
    } catch (const std::exception& error) {
      if (!is_elastic() || !communicator->Vanished()) {
        communicator->Abort(std::current_exception());  // the others may wait
        throw;
      }
      why_ = error.what();
      if (is_restored && communicator->rank() == 0) Save(solver.get());
      const int left = communicator->ranks() - 1;
      if (left < training_.ranks.min_ranks) throw;
      LOG(WARNING) << why_ << "; the other " << left << " go on from iteration "
                   << (solver ? solver->iter() : 0);
      return false;
    }
  }

  bool is_elastic() const { return training_.ranks.min_ranks > 0; }

  void Restore(Communicator* communicator, Solver* solver) const {
    const std::string from_memory = "from memory";
    const std::string own = memory_.state.empty() ? "" : from_memory;
    if (is_elastic() && communicator->AllGather(own).front() == from_memory) {
      solver->Restore(memory_);
    } else if (communicator->ranks() > 1 || !training_.resume_file.empty()) {
      RestoreFile(communicator, solver);
    }
  }

  // Which rank 0 names.
  void RestoreFile(Communicator* communicator, Solver* solver) const {
    const std::string file = communicator->AllGather(training_.resume_file).front();
    if (file.empty()) return;
    LOG_IF(INFO, communicator->rank() == 0) << "Restoring previous solver status from " << file;
    solver->Restore(file);
  }

  // A full disk does not end training.
  void Note(const MembershipEntry& entry) const {
    try {
      AddMembership(SnapshotPrefix(param_, training_.solver.file) + "_membership.txt", entry);
    } catch (const Error& error) {
      LOG(ERROR) << "Training goes on, but nobody can repeat it: " << error.what();
    }
  }

  void Save(Solver* solver) {
    memory_ = solver->Memory();
    try {
      solver->Snapshot();
    } catch (const Error& error) {
      LOG(ERROR) << "Snapshot at iteration " << solver->iter() << " failed: " << error.what();
    }
  }

  const SolverParameter& param_;
  const TrainingByRanks& training_;
  SolverMemory memory_;  // rank 0's, since one has vanished
  std::string why_;
};

}  // namespace

void TrainByRanks(const SolverParameter& param, const TrainingByRanks& training) {
  Training(param, training).Run();
}

void ReplayRanks(const SolverParameter& param, const SolverOptions& options,
                 const std::string& membership_file, const std::function<void(Solver&)>& prepare,
                 const std::function<void(Solver&)>& finish) {
  Require(param.random_seed() >= 0,
          "solver: has no random_seed, so that its ranks' training cannot be repeated");
  const std::vector<MembershipEntry> entries = ReadMembership(membership_file);
  Require(entries.front().iteration == 0, membership_file, ": begins at iteration ",
          entries.front().iteration, "; only training from iteration 0 can be repeated");
  // Each rank keeps its number of threads when others vanish.
  const ThreadsForNow as_before;
  const int threads = std::max(1, omp_get_max_threads() / entries.front().ranks);
  SolverMemory memory;
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto& [iteration, ranks, why] = entries[i];
    LOG(INFO) << "Iterations from " << iteration << " on by " << ranks << " workers";
    omp_set_num_threads(threads * ranks);
    SolverGroup group(param, options, ranks);
    if (prepare) prepare(group.solver(0));
    if (i > 0) group.Restore(memory);
    if (i + 1 == entries.size()) {
      group.Solve();
      if (finish) finish(group.solver(0));
      return;
    }
    group.Step(entries[i + 1].iteration - iteration);
    if (group.solver(0).iter() < entries[i + 1].iteration) return;  // stopped by a signal
    memory = group.solver(0).Memory();
  }
}

}  // namespace caffe
