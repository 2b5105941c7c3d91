// Timers.
#pragma once

#include <chrono>

#include "../common.hpp"

CAFFE_BVLC_BEGIN
// Measures wall-clock time between Start and Stop. A net's calls return when their results are
// available, so this also times work on a GPU.
class Timer {
 public:
  Timer() : running_(false), has_run_at_least_once_(false) {}
  virtual ~Timer() {}
  virtual void Start() {
    if (running_) return;
    start_ = Clock::now();
    running_ = has_run_at_least_once_ = true;
  }
  virtual void Stop() {
    if (!running_) return;
    stop_ = Clock::now();
    running_ = false;
  }
  // All three stop the timer and return 0 if it was never started.
  virtual float MilliSeconds() { return Elapsed<std::milli>(); }
  virtual float MicroSeconds() { return Elapsed<std::micro>(); }
  virtual float Seconds() { return Elapsed<std::ratio<1>>(); }

  inline bool initted() { return true; }
  inline bool running() { return running_; }
  inline bool has_run_at_least_once() { return has_run_at_least_once_; }

 private:
  typedef std::chrono::steady_clock Clock;

  template <typename Unit>
  float Elapsed() {
    if (!has_run_at_least_once_) {
      LOG(WARNING) << "Timer has never been run before reading time.";
      return 0;
    }
    Stop();
    return std::chrono::duration<float, Unit>(stop_ - start_).count();
  }

  bool running_, has_run_at_least_once_;
  Clock::time_point start_, stop_;
};

class CPUTimer : public Timer {};

CAFFE_BVLC_END
