// Watchdog: says why a run does not go on, and ends it where it was told to.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "caffe/core/clock.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Throws InvalidArgument for a watchdog other than "off", "warn" and "abort" and for times that are
// not positive.
void CheckWatchdog(const SolverParameter& param);

// While it lives, a thread of its own looks for activities (core/activity.hpp) of this process that
// last longer than the solver's watchdog_seconds, and names them in the log: first after that time,
// then after twice, four times that time. While a process is stopped (SIGSTOP, a cluster's suspend)
// nothing in it can get further, so that time does not count.
class Watchdog {
 public:
  // Called once, where the run was to be aborted and has not ended one watchdog_seconds later. May
  // be null.
  using GiveUp = std::function<void(const std::string& why)>;

  // Throws what CheckWatchdog() does. "off": there is no thread.
  Watchdog(const SolverParameter& param, GiveUp give_up);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // What was too long, once the run is to be aborted because of it; else empty.
  std::string reason() const;
  // Ends a run that is to be aborted and went on before a wait could be interrupted: throws the
  // DeviceError that interrupted waits throw.
  void ThrowIfAborted() const;

 private:
  void Run();
  void Look();
  void Abort();
  std::exception_ptr ErrorOf(const std::string& why) const;

  const double limit_;           // seconds
  const Clock::Duration pause_;  // between two looks
  Clock& clock_;                 // of the activities
  const bool aborts_;
  const GiveUp give_up_;
  double next_report_;  // age at which an activity is named
  int looks_since_abort_ = 0;
  bool has_given_up_ = false;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stops_ = false;
  std::string reason_;
  std::thread thread_;
};

}  // namespace caffe
