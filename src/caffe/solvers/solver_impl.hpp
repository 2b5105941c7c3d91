// What a solver consists of: its nets, what trains and tests them, and what it tells.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "caffe/core/fork.hpp"
#include "caffe/solver.hpp"
#include "caffe/solvers/checkpoints.hpp"
#include "caffe/solvers/iteration.hpp"
#include "caffe/solvers/run_length.hpp"
#include "caffe/solvers/solver_context.hpp"
#include "caffe/solvers/split_parameters.hpp"
#include "caffe/solvers/test_phase.hpp"
#include "caffe/solvers/training_log.hpp"
#include "caffe/solvers/update_rule.hpp"
#include "caffe/solvers/watchdog.hpp"
#include "caffe/solvers/whole_iteration.hpp"

namespace caffe {

struct Solver::Impl {
  Impl(const SolverParameter& solver_param, const SolverOptions& solver_options);

  NetOptions BuildTrainNet();
  // `ends_solve`: the snapshot of the last iteration is the caller's.
  void Step(int iterations, bool ends_solve = false);
  // False where it was stopped. With `chooses` the models of the run are compared by it, and the
  // best one is written.
  bool TestAll(bool chooses);
  SolverAction::Enum Poll();
  // Of the last whole iteration, where an error has broken off one.
  SolverProgress Progress() const;
  std::string Snapshot();
  // Weights files hold the average of the parameters, where one is kept. `check`: see
  // Checkpoints::Write().
  std::string WriteSnapshot(bool is_best = false, const std::function<void()>& check = {});
  // A file that cannot be written does not end training; weights that are not finite do.
  void SnapshotWhileTraining(bool is_best = false);
  void Restore(const std::string& file);
  // Throws InvalidArgument where Restore() or a step has failed while it changed something.
  void CheckWhole() const;
  // Tells the observers that training begins and, however it does, that it ends.
  void Observed(Solver* self, int stop, const std::function<void()>& train);
  void SolveFromHere();
  int iter() const { return iteration->number(); }
  const std::vector<std::shared_ptr<Blob>>& history() const {
    return iteration->updates().updater().history();
  }

  SolverParameter param;  // with max_iter, once the train net is there
  const SolverOptions options;
  std::optional<RunLength> length;
  uint64_t seed = 0;
  std::unique_ptr<UpdateRule> rule;
  std::shared_ptr<Net> net;
  std::optional<TrainingNet> training_net;
  DataParallel parallel;
  std::optional<TrainingProgress> reporter;
  std::vector<Callbacks> callbacks;
  std::optional<SolverContext> context;  // of those above
  std::optional<TestPhase> tests;
  std::optional<Checkpoints> checkpoints;
  std::optional<Iteration> iteration;
  std::optional<SplitParameters> split;
  std::optional<WholeIteration> whole;  // where a run that hangs is to leave a snapshot
  std::optional<TrainingLog> log;       // of worker 0
  // From the first run on, until one is aborted. One for each process, whose activities it sees.
  ThreadedPtr<Watchdog> watchdog;
  std::function<SolverAction::Enum()> action_function;
  struct {
    bool stop_requested = false;
    std::string broken;         // why training cannot go on; empty where it can
    std::string restored_from;  // since the last training; empty if nothing was
  } standing;
};

}  // namespace caffe
