#include "caffe/compat/caffe/util/signal_handler.hpp"

#include <signal.h>

#include "caffe/error.hpp"

namespace caffe::bvlc {
namespace {

volatile sig_atomic_t got_sigint = 0, got_sighup = 0;
bool is_installed = false;
struct sigaction old_sigint, old_sighup;

void TakeNote(int signal) {
  (signal == SIGINT ? got_sigint : got_sighup) = 1;
}

void Install(int signal, struct sigaction* old) {
  struct sigaction action = {};
  action.sa_handler = &TakeNote;
  action.sa_flags = SA_RESTART;
  sigfillset(&action.sa_mask);
  if (sigaction(signal, &action, old) != 0)
    throw Error(StrCat("cannot install a handler for signal ", signal));
}

// True if the flag was set since the last call.
bool Take(volatile sig_atomic_t* flag) {
  const bool was_set = *flag != 0;
  *flag = 0;
  return was_set;
}

}  // namespace

SignalHandler::SignalHandler(SolverAction::Enum SIGINT_action, SolverAction::Enum SIGHUP_action)
    : SIGINT_action_(SIGINT_action), SIGHUP_action_(SIGHUP_action) {
  Require(!is_installed, "a SignalHandler already exists; there can be one at a time");
  Install(SIGINT, &old_sigint);
  Install(SIGHUP, &old_sighup);
  is_installed = true;
}

SignalHandler::~SignalHandler() {
  sigaction(SIGINT, &old_sigint, nullptr);
  sigaction(SIGHUP, &old_sighup, nullptr);
  is_installed = false;
}

SolverAction::Enum SignalHandler::CheckForSignals() const {
  if (Take(&got_sighup)) return SIGHUP_action_;
  if (Take(&got_sigint)) return SIGINT_action_;
  return SolverAction::NONE;
}

ActionCallback SignalHandler::GetActionFunction() {
  return [this] { return CheckForSignals(); };
}

}  // namespace caffe::bvlc
