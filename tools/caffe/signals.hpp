// What signals do while a solver trains: --sigint_effect, --sighup_effect, --sigterm_effect.
#pragma once

#include <CLI/CLI.hpp>

#include "caffe/solver.hpp"

namespace caffe::tools {

struct SignalEffects {
  SolverAction::Enum sigint = SolverAction::STOP;
  SolverAction::Enum sighup = SolverAction::SNAPSHOT;
  SolverAction::Enum sigterm = SolverAction::STOP;

  // Values other than snapshot, stop and none are refused.
  void Add(CLI::App& app);
};

// From now on no signal ends the program whose effect is another one than to stop: while nothing
// can be snapshotted yet, it waits for HandleSignals(). What stops a run ends the program until
// then.
void AwaitSolver(const SignalEffects& effects);

// From now on the solver looks after each iteration for signals that have come.
void HandleSignals(const SignalEffects& effects, Solver& solver);

}  // namespace caffe::tools
