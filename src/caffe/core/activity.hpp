// Activity: tells what the threads of this process are doing, to explain why a run is stuck.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "caffe/core/clock.hpp"
#include "caffe/export.hpp"

namespace caffe {

// The calling thread does this from construction to destruction. Activities of one thread may be
// nested; then the innermost counts. Meant for work as large as a batch or a file: an activity
// costs about as much as two locks, and allocates no memory.
class CAFFE_EXPORT Activity {
 public:
  // Makes the thread throw the given exception. Called from another thread; the activity's
  // destructor waits for the call. Must not throw.
  using Interrupt = std::function<void(const std::exception_ptr&)>;

  // Example: "parser", "reads", "/data/cat.jpg". The stages are reader, parser, compute, reduction,
  // test and snapshot. The texts must outlive the activity. Give `interrupt` only if the thread
  // does nothing but wait.
  Activity(const char* stage, const char* verb, std::string_view object,
           Interrupt interrupt = nullptr);
  ~Activity();
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;

  // Reports progress: the age of the calling thread's innermost activity, if any, starts again at
  // zero. For the steps of work that may take long as a whole.
  static void ReportProgress();
  // Makes all activities younger by `lost`, a time during which this process was stopped.
  static void DiscountPause(Clock::Duration lost);

  struct Report {
    std::string text;  // "parser: reads /data/cat.jpg"
    double seconds = 0;
  };
  // Returns the innermost activities that have lasted at least `seconds`, longest first.
  static std::vector<Report> LongerThan(double seconds);
  // Interrupts every thread that has only waited for at least `seconds`. Returns true if there was
  // one. An interruption that takes longer than `patience` continues in the background and is not
  // begun again.
  static bool InterruptWaits(double seconds, const std::exception_ptr& error,
                             Clock::Duration patience = std::chrono::seconds(5));

  // The clock that measures ages. Tests replace it while there is no activity.
  static Clock& clock();
  static void UseClock(Clock* clock);

 private:
  struct Registry;
  static Registry& TheRegistry();
  static void RegisterOwnAlone();
  static void Call(Activity* one, const std::exception_ptr& error);

  const char *const stage_, *const verb_;
  const std::string_view object_;
  const Interrupt interrupt_;
  std::atomic<Clock::TimePoint> begin_ = clock().Now();
  Activity* const outer_;
  bool is_innermost_ = true;
  int interruptions_ = 0;                           // calls to interrupt_ in progress
  Activity *previous_ = nullptr, *next_ = nullptr;  // in the registry's list
};

}  // namespace caffe
