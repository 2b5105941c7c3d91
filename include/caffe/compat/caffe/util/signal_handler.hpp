// Turns SIGINT and SIGHUP into actions of a solver.
#pragma once

#include "../solver.hpp"

CAFFE_BVLC_BEGIN
// One at a time in a process; the signals' old handlers come back with its end.
class SignalHandler {
 public:
  SignalHandler(SolverAction::Enum SIGINT_action, SolverAction::Enum SIGHUP_action);
  ~SignalHandler();
  ActionCallback GetActionFunction();

 private:
  SolverAction::Enum CheckForSignals() const;

  SolverAction::Enum SIGINT_action_;
  SolverAction::Enum SIGHUP_action_;

  DISABLE_COPY_AND_ASSIGN(SignalHandler);
};

CAFFE_BVLC_END
