// Clock: the clock for timed waits and ages. Tests substitute their own clock
// (tests/support/test_clock.hpp), so that no result depends on how busy a machine is.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "caffe/export.hpp"

namespace caffe {

class CAFFE_EXPORT Clock {
 public:
  using Duration = std::chrono::steady_clock::duration;
  using TimePoint = std::chrono::steady_clock::time_point;

  virtual ~Clock() = default;

  virtual TimePoint Now() const = 0;
  // Waits until is_done() or until `end`, whichever comes first, and returns is_done(). `lock` is
  // held while is_done() is called; the thread that changes its result notifies `changed`.
  virtual bool WaitUntil(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                         TimePoint end, const std::function<bool()>& is_done) = 0;

  // The system's steady clock.
  static Clock& Steady();
};

}  // namespace caffe
