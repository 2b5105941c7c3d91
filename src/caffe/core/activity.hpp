// What the threads of this process are doing, for whoever asks why a run does not go on.
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

// From its construction to its end the calling thread does this. Where activities of a thread lie
// within each other, the innermost counts. Meant for work as large as a batch or a file: an
// activity costs about as much as two locks, and no memory.
class CAFFE_EXPORT Activity {
 public:
  // Makes the thread throw what it is given; called from another thread, for which the end of the
  // activity waits. Must not throw.
  using Interrupt = std::function<void(const std::exception_ptr&)>;

  // As in "parser", "reads", "/data/cat.jpg". The stages are reader, parser, compute, reduction,
  // test and snapshot. The texts must outlive the activity. Give `interrupt` where the thread only
  // waits.
  Activity(const char* stage, const char* verb, std::string_view object,
           Interrupt interrupt = nullptr);
  ~Activity();
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;

  // The calling thread's innermost activity, if it has one, has got further: it is as if it had
  // just begun. For steps of work that may take long as a whole.
  static void GetFurther();
  // All activities are younger by this much, which the process did not live through: it was
  // stopped.
  static void Excuse(Clock::Duration lost);

  struct Report {
    std::string text;  // "parser: reads /data/cat.jpg"
    double seconds = 0;
  };
  // Those that have lasted at least that long, the longest first.
  static std::vector<Report> LongerThan(double seconds);
  // Interrupts every thread that has only waited for at least that long. Whether there was one. An
  // interruption that takes longer than `patience` goes on by itself, and is not begun again.
  static bool InterruptWaits(double seconds, const std::exception_ptr& error,
                             Clock::Duration patience = std::chrono::seconds(5));

  // By which ages are measured. Tests set another one while there is no activity.
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
  int interruptions_ = 0;                           // that are being called
  Activity *previous_ = nullptr, *next_ = nullptr;  // in the registry's list
};

}  // namespace caffe
