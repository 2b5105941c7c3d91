#include "caffe/core/activity.hpp"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

#include "caffe/core/start_thread.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

thread_local Activity* innermost = nullptr;

static_assert(std::atomic<Clock::TimePoint>::is_always_lock_free);

std::atomic<Clock*> used_clock = nullptr;  // null: the steady clock

double SecondsSince(Clock::TimePoint begin) {
  return std::chrono::duration<double>(Activity::clock().Now() - begin).count();
}

}  // namespace

struct Activity::Registry {
  std::mutex mutex;
  std::condition_variable changed;  // notified when an interruption has ended
  uint64_t ended = 0;               // number of interruptions that have ended
  Activity* first = nullptr;
};

// Never destroyed: threads may outlive main().
Activity::Registry& Activity::TheRegistry() {
  static auto* const registry = [] {
    // In a child made by fork(), the registry is unlocked and holds the activities of its only
    // thread.
    ::pthread_atfork([] { TheRegistry().mutex.lock(); }, [] { TheRegistry().mutex.unlock(); },
                     [] {
                       RegisterOwnAlone();
                       TheRegistry().mutex.unlock();
                     });
    return new Registry;
  }();
  return *registry;
}

void Activity::RegisterOwnAlone() {
  Registry& registry = TheRegistry();
  registry.first = nullptr;
  for (Activity* one = innermost; one != nullptr; one = one->outer_) {
    one->interruptions_ = 0;
    one->previous_ = nullptr;
    one->next_ = std::exchange(registry.first, one);
    if (one->next_ != nullptr) one->next_->previous_ = one;
  }
}

Activity::Activity(const char* stage, const char* verb, std::string_view object,
                   Interrupt interrupt)
    : stage_(stage),
      verb_(verb),
      object_(object),
      interrupt_(std::move(interrupt)),
      outer_(std::exchange(innermost, this)) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  if (outer_ != nullptr) outer_->is_innermost_ = false;
  next_ = std::exchange(registry.first, this);
  if (next_ != nullptr) next_->previous_ = this;
}

Activity::~Activity() {
  innermost = outer_;
  Registry& registry = TheRegistry();
  std::unique_lock lock(registry.mutex);
  registry.changed.wait(lock, [this] { return interruptions_ == 0; });
  (previous_ != nullptr ? previous_->next_ : registry.first) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
  if (outer_ == nullptr) return;
  outer_->is_innermost_ = true;
  outer_->begin_ = clock().Now();  // the outer activity resumes now
}

Clock& Activity::clock() {
  Clock* const used = used_clock;
  return used != nullptr ? *used : Clock::Steady();
}

void Activity::UseClock(Clock* clock) {
  used_clock = clock;
}

void Activity::ReportProgress() {
  if (innermost != nullptr) innermost->begin_ = clock().Now();
}

void Activity::DiscountPause(Clock::Duration lost) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  for (Activity* one = registry.first; one != nullptr; one = one->next_) {
    one->begin_ = std::min(one->begin_.load() + lost, clock().Now());
  }
}

std::vector<Activity::Report> Activity::LongerThan(double seconds) {
  std::vector<Report> reports;
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  for (const Activity* one = registry.first; one != nullptr; one = one->next_) {
    const double age = SecondsSince(one->begin_);
    if (one->is_innermost_ && age >= seconds) {
      reports.push_back({StrCat(one->stage_, ": ", one->verb_, " ", one->object_), age});
    }
  }
  std::sort(reports.begin(), reports.end(),
            [](const Report& a, const Report& b) { return a.seconds > b.seconds; });
  return reports;
}

// The activity's destructor waits for this call, so the activity stays in the list meanwhile.
void Activity::Call(Activity* one, const std::exception_ptr& error) {
  one->interrupt_(error);
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  --one->interruptions_;
  ++registry.ended;
  registry.changed.notify_all();
}

// Interrupts without the lock and in separate threads, because an interruption may hang
// (ncclCommAbort). Meanwhile other threads must be able to begin and end activities, and the
// watchdog must be able to end the process.
bool Activity::InterruptWaits(double seconds, const std::exception_ptr& error,
                              Clock::Duration patience) {
  Registry& registry = TheRegistry();
  std::unique_lock lock(registry.mutex);
  const uint64_t ended_before = registry.ended;
  uint64_t begun = 0;
  for (Activity* one = registry.first; one != nullptr; one = one->next_) {
    if (!one->is_innermost_ || !one->interrupt_ || one->interruptions_ > 0 ||
        SecondsSince(one->begin_) < seconds) {
      continue;
    }
    try {
      ++one->interruptions_;
      StartThread("an interruption", [one, error] { Call(one, error); }).detach();
      ++begun;
    } catch (const DeviceError&) {  // no thread could be started; the next call may get one
      --one->interruptions_;
    }
  }
  registry.changed.wait_for(lock, patience, [&] { return registry.ended - ended_before >= begun; });
  return begun > 0;
}

}  // namespace caffe
