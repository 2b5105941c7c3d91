// Effects of signals during training: --sigint_effect, --sighup_effect, --sigterm_effect.
#pragma once

#include <CLI/CLI.hpp>

#include "caffe/solver.hpp"

namespace caffe::tools {

struct SignalEffects {
  SolverAction::Enum sigint = SolverAction::STOP;
  SolverAction::Enum sighup = SolverAction::SNAPSHOT;
  SolverAction::Enum sigterm = SolverAction::STOP;

  // Accepts the values snapshot, stop and none.
  void Add(CLI::App& app);
};

// From now on, signals whose effect is not to stop no longer end the program: they wait for
// HandleSignals(), because nothing can be snapshotted yet. A signal whose effect is to stop still
// ends the program.
void AwaitSolver(const SignalEffects& effects);

// From now on the solver checks for signals after each iteration.
void HandleSignals(const SignalEffects& effects, Solver& solver);

}  // namespace caffe::tools
