#include "tools/caffe/signals.hpp"

#include <signal.h>

#include <atomic>
#include <string>

#include "caffe/error.hpp"

namespace caffe::tools {
namespace {

std::atomic<bool> has_come[NSIG];

void OnSignal(int signal) {
  has_come[signal] = true;
}

SolverAction::Enum ParseEffect(const std::string& flag, const std::string& value) {
  if (value == "stop") return SolverAction::STOP;
  if (value == "snapshot") return SolverAction::SNAPSHOT;
  if (value == "none") return SolverAction::NONE;
  throw InvalidArgument("-" + flag + ": Invalid signal effect \"" + value +
                        "\" was specified; use snapshot, stop or none");
}

void AddEffect(CLI::App& app, const std::string& flag, const std::string& standard,
               const std::string& description, SolverAction::Enum* effect) {
  app.add_option_function<std::string>(
         "--" + flag, [=](const std::string& value) { *effect = ParseEffect(flag, value); },
         description)
      ->type_name("snapshot|stop|none")
      ->default_str(standard);
}

}  // namespace

void SignalEffects::Add(CLI::App& app) {
  AddEffect(app, "sigint_effect", "stop", "What SIGINT (Ctrl-C) does", &sigint);
  AddEffect(app, "sighup_effect", "snapshot", "What SIGHUP does", &sighup);
  AddEffect(app, "sigterm_effect", "stop",
            "What SIGTERM, by which clusters end jobs, does. Stopping snapshots unless "
            "snapshot_after_train is false",
            &sigterm);
}

void HandleSignals(const SignalEffects& options, Solver& solver) {
  struct Effect {
    int signal;
    SolverAction::Enum action;
  };
  const Effect effects[] = {
      {SIGINT, options.sigint},
      {SIGTERM, options.sigterm},
      {SIGHUP, options.sighup},
      // Nobody reads the log any more: Ctrl-C also ends the tee of `caffe train 2>&1 | tee log`.
      {SIGPIPE, SolverAction::STOP}};
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
