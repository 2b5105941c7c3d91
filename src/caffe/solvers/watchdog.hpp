// Watchdog: says why a run does not go on, and ends it where it was told to.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "caffe/proto/caffe.pb.h"

namespace caffe {

// While it lives, a thread of its own looks for activities (core/activity.hpp) that last longer
// than the solver's watchdog_seconds, and names them in the log: first after that time, then after
// twice, four times that time.
class Watchdog {
 public:
  // Called where the run was to be aborted and has not ended one watchdog_seconds later. May be null.
  using GiveUp = std::function<void(const std::string& why)>;

  // Throws InvalidArgument for a watchdog other than "off", "warn" and "abort" and for times that
  // are not positive. "off": there is no thread.
  Watchdog(const SolverParameter& param, GiveUp give_up);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // What was too long, once waits were interrupted because of it; else empty.
  std::string reason() const;

 private:
  void Run();
  void Look();
  void Abort(const std::string& why);

  const double limit_;  // seconds
  const bool aborts_;
  const GiveUp give_up_;
  double next_report_;        // age at which an activity is named
  double aborted_after_ = 0;  // seconds since the watchdog aborted the run
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stops_ = false;
  std::string reason_;
  std::thread thread_;
};

}  // namespace caffe
