// Watchdog: reports why a run makes no progress, and ends it if configured to.
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

// While it exists, its thread looks for activities (core/activity.hpp) of this process that last
// longer than the solver's watchdog_seconds, and logs them: first after that time, then after
// twice, four times that time. Time in which the process is stopped (SIGSTOP, a cluster's suspend)
// does not count, because nothing in it can make progress.
class Watchdog {
 public:
  // Called once if an aborted run has not ended one watchdog_seconds later. May be null.
  using GiveUp = std::function<void(const std::string& why)>;

  // Throws what CheckWatchdog() throws. With "off", there is no thread.
  Watchdog(const SolverParameter& param, GiveUp give_up);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // The text about the overdue activities if the run is to be aborted, otherwise empty.
  std::string reason() const;
  // For a run that continued before a wait could be interrupted: throws the DeviceError that
  // interrupted waits throw if the run is to be aborted.
  void ThrowIfAborted() const;

 private:
  void Run();
  void Look();
  void Abort();
  std::exception_ptr ErrorOf(const std::string& why) const;

  const double limit_;           // in seconds
  const Clock::Duration pause_;  // between two checks
  Clock& clock_;                 // clock of the activities
  const bool aborts_;
  const GiveUp give_up_;
  double next_report_;  // age at which activities are next reported
  int looks_since_abort_ = 0;
  bool has_given_up_ = false;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stops_ = false;
  std::string reason_;
  std::thread thread_;
};

}  // namespace caffe
