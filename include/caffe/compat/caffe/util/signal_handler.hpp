// Maps SIGINT and SIGHUP to solver actions.
#pragma once

#include "../solver.hpp"

CAFFE_BVLC_BEGIN
// One instance at a time in a process; the destructor restores the previous handlers.
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
