// The parts of a solver: its nets, training, tests and reports.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "caffe/core/fork.hpp"
#include "caffe/experimental/split_parameters.hpp"
#include "caffe/solver.hpp"
#include "caffe/solvers/checkpoints.hpp"
#include "caffe/solvers/iteration.hpp"
#include "caffe/solvers/run_length.hpp"
#include "caffe/solvers/solver_context.hpp"
#include "caffe/solvers/test_phase.hpp"
#include "caffe/solvers/training_log.hpp"
#include "caffe/solvers/update_rule.hpp"
#include "caffe/solvers/watchdog.hpp"
#include "caffe/solvers/whole_iteration.hpp"

namespace caffe {

struct Solver::Impl {
  Impl(const SolverParameter& solver_param, const SolverOptions& solver_options);

  NetOptions BuildTrainNet();
  // `ends_solve`: the caller writes the snapshot of the last iteration.
  void Step(int iterations, bool ends_solve = false);
  // Returns false if stopped. With `chooses`, compares the run's models by the results and writes
  // the best one.
  bool TestAll(bool chooses);
  SolverAction::Enum Poll();
  // After an error in an iteration, this is the progress of the last complete one.
  SolverProgress Progress() const;
  std::string Snapshot();
  // If parameters are averaged, weights files contain the average. `check`: see
  // Checkpoints::Write().
  std::string WriteSnapshot(bool is_best = false, const std::function<void()>& check = {});
  // A file that cannot be written does not end training, but weights that are not finite do.
  void SnapshotOnAllRanks(bool is_best = false);
  void SnapshotWhileTraining(bool is_best = false);
  void Restore(const std::string& file);
  // Throws InvalidArgument if Restore() or an iteration failed while changing weights.
  void CheckWhole() const;
  // Tells the observers that training begins and, also in case of an error, that it ends.
  void Observed(Solver* self, int stop, const std::function<void()>& train);
  void SolveFromHere();
  int iter() const { return iteration->number(); }
  const std::vector<std::shared_ptr<Blob>>& history() const {
    return iteration->updates().updater().history();
  }

  SolverParameter param;  // max_iter is set once the train net exists
  const SolverOptions options;
  std::optional<RunLength> length;
  uint64_t seed = 0;
  std::unique_ptr<UpdateRule> rule;
  std::shared_ptr<Net> net;
  std::optional<TrainingNet> training_net;
  DataParallel parallel;
  std::optional<TrainingProgress> reporter;
  std::vector<Callbacks> callbacks;
  std::optional<SolverContext> context;  // refers to the members above
  std::optional<TestPhase> tests;
  std::optional<Checkpoints> checkpoints;
  std::optional<Iteration> iteration;
  std::optional<SplitParameters> split;
  std::optional<WholeIteration> whole;  // only if a hanging run must leave a snapshot
  std::optional<TrainingLog> log;       // only for worker 0
  // Exists from the first run until one is aborted. One per process, because it watches the
  // process's activities.
  ThreadedPtr<Watchdog> watchdog;
  std::function<SolverAction::Enum()> action_function;
  struct {
    bool stop_requested = false;
    std::string broken;         // why training cannot continue, or empty
    std::string restored_from;  // since the last training; empty if not restored
  } standing;
};

}  // namespace caffe
