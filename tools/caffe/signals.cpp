#include "tools/caffe/signals.hpp"

#include <gflags/gflags.h>
#include <signal.h>

#include <atomic>
#include <string>

#include "caffe/error.hpp"

DEFINE_string(sigint_effect, "stop", "What SIGINT does while training: snapshot, stop or none.");
DEFINE_string(sighup_effect, "snapshot",
              "What SIGHUP does while training: snapshot, stop or none.");
DEFINE_string(sigterm_effect, "stop",
              "What SIGTERM, by which clusters end jobs, does while training: snapshot, stop or "
              "none. Stopping snapshots, unless snapshot_after_train is false.");

namespace caffe::tools {
namespace {

std::atomic<bool> has_come[NSIG];

void OnSignal(int signal) {
  has_come[signal] = true;
}

SolverAction::Enum EffectFromFlag(const char* flag, const std::string& value) {
  if (value == "stop") return SolverAction::STOP;
  if (value == "snapshot") return SolverAction::SNAPSHOT;
  if (value == "none") return SolverAction::NONE;
  throw InvalidArgument(std::string("-") + flag + ": Invalid signal effect \"" + value +
                        "\" was specified; use snapshot, stop or none");
}

}  // namespace

void HandleSignals(Solver& solver) {
  struct Effect {
    int signal;
    SolverAction::Enum action;
  };
  const Effect effects[] = {{SIGINT, EffectFromFlag("sigint_effect", FLAGS_sigint_effect)},
                            {SIGTERM, EffectFromFlag("sigterm_effect", FLAGS_sigterm_effect)},
                            {SIGHUP, EffectFromFlag("sighup_effect", FLAGS_sighup_effect)}};
  struct sigaction action {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigfillset(&action.sa_mask);
  for (const Effect& effect : effects) {
    if (effect.action != SolverAction::NONE) sigaction(effect.signal, &action, nullptr);
  }
  solver.SetActionFunction([=] {
    for (const Effect& effect : effects) {
      if (has_come[effect.signal].exchange(false)) return effect.action;
    }
    return SolverAction::NONE;
  });
}

}  // namespace caffe::tools
