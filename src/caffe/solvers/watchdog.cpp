#include "caffe/solvers/watchdog.hpp"

#include <glog/logging.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <new>
#include <utility>
#include <vector>

#include "caffe/core/activity.hpp"
#include "caffe/core/start_thread.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

std::string Describe(const std::vector<Activity::Report>& reports) {
  std::string text;
  for (const Activity::Report& report : reports) {
    if (!text.empty()) text += "; ";
    text += StrCat(report.text, " (for ", std::llround(report.seconds), " s)");
  }
  return text;
}

double CheckedSeconds(const SolverParameter& param) {
  CheckWatchdog(param);
  return param.watchdog_seconds();
}

}  // namespace

void CheckWatchdog(const SolverParameter& param) {
  const std::string& name = param.watchdog();
  Require(name == "off" || name == "warn" || name == "abort", "solver: watchdog is '", name,
          "'; give off, warn or abort");
  const double seconds = param.watchdog_seconds();
  Require(std::isfinite(seconds) && seconds > 0, "solver: watchdog_seconds is ", seconds,
          "; give a positive number of seconds, or watchdog: \"off\"");
}

Watchdog::Watchdog(const SolverParameter& param, GiveUp give_up)
    : limit_(CheckedSeconds(param)),
      pause_(std::chrono::duration_cast<Clock::Duration>(
          std::chrono::duration<double>(std::clamp(limit_ / 10, 0.01, 5.0)))),
      clock_(Activity::clock()),
      aborts_(param.watchdog() == "abort"),
      give_up_(std::move(give_up)),
      next_report_(limit_) {
  if (param.watchdog() != "off") thread_ = StartThread("the watchdog", [this] { Run(); });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::string Watchdog::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

void Watchdog::ThrowIfAborted() const {
  if (const std::string why = reason(); !why.empty()) std::rethrow_exception(ErrorOf(why));
}

void Watchdog::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const Clock::TimePoint end = clock_.Now() + pause_;
    if (clock_.WaitUntil(changed_, lock, end, [&] { return stops_; })) return;
    lock.unlock();
    // This thread only waits, so a long delay means that the process was stopped.
    const Clock::Duration lost = clock_.Now() - end;
    if (lost > pause_) Activity::DiscountPause(lost);
    try {
      Look();
      if (!reason().empty()) Abort();
    } catch (const std::bad_alloc&) {
      // More memory may be available at the next check.
    }
    lock.lock();
  }
}

void Watchdog::Look() {
  const std::vector<Activity::Report> reports = Activity::LongerThan(limit_);
  if (reports.empty()) {
    next_report_ = limit_;
    return;
  }
  if (reports[0].seconds < next_report_) return;
  next_report_ = 2 * reports[0].seconds;
  const std::string text = Describe(reports);
  LOG(WARNING) << "No progress for " << limit_ << " s: " << text;
  const std::lock_guard lock(mutex_);
  if (aborts_ && reason_.empty()) reason_ = text;
}

// Called at each check, because one thread may start to wait after the other hangs. Shorter waits
// are not interrupted, because they may belong to another solver of this process.
void Watchdog::Abort() {
  const std::string why = reason();
  Activity::InterruptWaits(limit_, ErrorOf(why));
  const std::chrono::duration<double> since_abort = ++looks_since_abort_ * pause_;
  if (!give_up_ || has_given_up_ || since_abort.count() <= limit_) return;
  has_given_up_ = true;
  give_up_(why);
}

std::exception_ptr Watchdog::ErrorOf(const std::string& why) const {
  return std::make_exception_ptr(DeviceError(
      StrCat("the watchdog ended the run, which made no progress for ", limit_, " s: ", why)));
}

}  // namespace caffe
