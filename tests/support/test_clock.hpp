// A clock that stands still until a test advances it.
#pragma once

#include <algorithm>
#include <list>
#include <vector>

#include "caffe/core/activity.hpp"
#include "caffe/core/clock.hpp"

namespace caffe::testing {

// For one thread that waits on it: Advance() returns once that thread waits again, so everything
// that it does until then has been done.
class TestClock final : public Clock {
 public:
  TimePoint Now() const override {
    const std::lock_guard lock(mutex_);
    return now_;
  }

  bool WaitUntil(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                 TimePoint end, const std::function<bool()>& is_done) override {
    std::list<Sleeper>::iterator own;
    {
      const std::lock_guard own_lock(mutex_);
      own = sleepers_.insert(sleepers_.end(), {&changed, lock.mutex(), end});
      ++waits_;
      begun_.notify_all();
    }
    changed.wait(lock, [&] { return is_done() || Now() >= end; });
    const std::lock_guard own_lock(mutex_);
    sleepers_.erase(own);
    return is_done();
  }

  // Waits until this many waits have begun.
  void AwaitWaits(int count) {
    std::unique_lock lock(mutex_);
    begun_.wait(lock, [&] { return waits_ >= count; });
  }

  // Time passes: each waiting thread wakes at its own time.
  void Advance(Duration time) {
    const TimePoint target = Now() + time;
    for (TimePoint next = NextEnd(); next <= target; next = NextEnd()) MoveTo(next);
    MoveTo(target);
  }

  // The process is stopped for this time: waiting threads wake late.
  void Skip(Duration time) { MoveTo(Now() + time); }

  // The number of waits that have begun so far.
  int waits() const {
    const std::lock_guard lock(mutex_);
    return waits_;
  }

 private:
  struct Sleeper {
    std::condition_variable* changed;
    std::mutex* mutex;
    TimePoint end;
  };

  TimePoint NextEnd() const {
    const std::lock_guard lock(mutex_);
    TimePoint next = TimePoint::max();
    for (const Sleeper& sleeper : sleepers_) next = std::min(next, sleeper.end);
    return next;
  }

  void MoveTo(TimePoint time) {
    std::unique_lock lock(mutex_);
    now_ = std::max(now_, time);
    std::vector<Sleeper> due;
    for (const Sleeper& sleeper : sleepers_) {
      if (sleeper.end <= now_) due.push_back(sleeper);
    }
    const int before = waits_;
    lock.unlock();
    for (const Sleeper& sleeper : due) {
      { const std::lock_guard its(*sleeper.mutex); }  // it has read the time before, or waits
      sleeper.changed->notify_all();
    }
    lock.lock();
    begun_.wait(lock, [&] { return waits_ >= before + static_cast<int>(due.size()); });
  }

  mutable std::mutex mutex_;
  std::condition_variable begun_;
  TimePoint now_ = TimePoint() + std::chrono::hours(1000);
  std::list<Sleeper> sleepers_;
  int waits_ = 0;
};

// Activities take their times from a test's clock while this exists; there are none at the start.
class ActivityClock {
 public:
  ActivityClock() { Activity::UseClock(&clock_); }
  ~ActivityClock() { Activity::UseClock(&Clock::Steady()); }
  ActivityClock(const ActivityClock&) = delete;
  ActivityClock& operator=(const ActivityClock&) = delete;

  TestClock* operator->() { return &clock_; }

 private:
  TestClock clock_;
};

}  // namespace caffe::testing
