#include "tools/caffe/signals.hpp"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "caffe/error.hpp"

namespace caffe::tools {
namespace {

std::atomic<bool> has_come[NSIG];

// Time of the first Ctrl-C, in nanoseconds; 0: none yet.
std::atomic<int64_t> interrupted_at{0};
static_assert(std::atomic<int64_t>::is_always_lock_free);

// A terminal, a script and `tee` may deliver one key press several times.
constexpr int64_t kOnePressNanoseconds = 500'000'000;

int64_t Now() {
  struct timespec now {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

template <size_t size>
void Say(const char (&text)[size]) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, size - 1);
}

void OnSignal(int signal) {
  has_come[signal] = true;
}

// Handles a Ctrl-C that stops the run. The solver checks between two iterations; if an iteration
// never ends, because a disk hangs, a second Ctrl-C ends the program at once.
void OnInterrupt(int signal) {
  int64_t first = 0;
  if (interrupted_at.compare_exchange_strong(first, Now())) {
    Say("\nStopping after this iteration; Ctrl-C once more ends at once, without a snapshot.\n");
  } else if (Now() - first > kOnePressNanoseconds) {
    Say("\nEnded at once; the last snapshot is whole.\n");
    ::signal(signal, SIG_DFL);
    ::raise(signal);
  }
  OnSignal(signal);
}

struct Effect {
  int signal;
  SolverAction::Enum action;

  // Needed for `none` too: without a handler the signal would end the process.
  void Handle() const {
    const bool interrupts = signal == SIGINT && action == SolverAction::STOP;
    struct sigaction handling {};
    handling.sa_handler = interrupts ? OnInterrupt : OnSignal;
    handling.sa_flags = SA_RESTART;
    sigfillset(&handling.sa_mask);
    sigaction(signal, &handling, nullptr);
  }
};

std::array<Effect, 4> EffectsOf(const SignalEffects& options) {
  return {
      {{SIGINT, options.sigint},
       {SIGTERM, options.sigterm},
       {SIGHUP, options.sighup},
       // Nobody reads the log any more: Ctrl-C also ends the tee in `caffe train 2>&1 | tee log`.
       {SIGPIPE, SolverAction::STOP}}};
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

void AwaitSolver(const SignalEffects& options) {
  for (const Effect& effect : EffectsOf(options)) {
    if (effect.action != SolverAction::STOP) effect.Handle();
  }
}

void HandleSignals(const SignalEffects& options, Solver& solver) {
  const std::array<Effect, 4> effects = EffectsOf(options);
  for (const Effect& effect : effects) effect.Handle();
  solver.SetActionFunction([=] {
    for (const Effect& effect : effects) {
      if (has_come[effect.signal].exchange(false)) return effect.action;
    }
    return SolverAction::NONE;
  });
}

}  // namespace caffe::tools
