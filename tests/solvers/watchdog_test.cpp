#include "caffe/solvers/watchdog.hpp"

#include <glog/logging.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <future>
#include <latch>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "caffe/core/activity.hpp"
#include "caffe/error.hpp"
#include "caffe/solver.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/test_clock.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using namespace std::chrono_literals;
using testing::ActivityClock;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::ErrorText;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

SolverParameter Settings(const std::string& watchdog, float seconds) {
  SolverParameter param;
  param.set_watchdog(watchdog);
  param.set_watchdog_seconds(seconds);
  return param;
}

// Collects the log's warnings while it exists.
class Warnings final : public google::LogSink {
 public:
  Warnings() { google::AddLogSink(this); }
  ~Warnings() override { google::RemoveLogSink(this); }

  std::vector<std::string> texts() const {
    const std::lock_guard lock(mutex_);
    return texts_;
  }

 private:
  void send(google::LogSeverity severity, const char*, const char*, int, const std::tm*,
            const char* message, size_t length) override {
    if (severity != google::GLOG_WARNING) return;
    const std::lock_guard lock(mutex_);
    texts_.emplace_back(message, length);
  }

  mutable std::mutex mutex_;
  std::vector<std::string> texts_;
};

// A thread's wait that the watchdog may interrupt, like that for a batch.
class Wait {
 public:
  Wait() { begun_.wait(); }

  // Returns the error that interrupted it; null if Finish() came first.
  std::exception_ptr Result() { return result_.get(); }

  void Finish() {
    const std::lock_guard lock(mutex_);
    is_finished_ = true;
    changed_.notify_all();
  }

 private:
  std::exception_ptr Run() {
    const Activity waiting("compute", "waits for", "the test",
                           [this](const std::exception_ptr& error) {
                             const std::lock_guard lock(mutex_);
                             error_ = error;
                             changed_.notify_all();
                           });
    begun_.count_down();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_finished_ || error_ != nullptr; });
    return error_;
  }

  std::latch begun_{1};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_finished_ = false;
  std::exception_ptr error_;
  std::future<std::exception_ptr> result_ =
      std::async(std::launch::async, [this] { return Run(); });
};

TEST(WatchdogSettingsTest, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(ErrorText<InvalidArgument>([] { Watchdog(Settings("kill", 1), nullptr); }),
              AllOf(HasSubstr("watchdog is 'kill'"), HasSubstr("off, warn or abort")));
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float seconds : {0.0f, -1.0f, infinity, std::nanf("")}) {
    for (const char* name : {"warn", "abort", "off"}) {
      EXPECT_THAT(ErrorText<InvalidArgument>([&] { Watchdog(Settings(name, seconds), nullptr); }),
                  HasSubstr("watchdog_seconds is"))
          << seconds;
    }
  }
}

// The error does not wait for the first step, after minutes of reading weights and data.
TEST(WatchdogSettingsTest, ASolverIsNotMadeWithWhatItDoesNotKnow) {
  EXPECT_THAT(ErrorText<InvalidArgument>([] { Solver(Settings("kill", 1)); }),
              HasSubstr("watchdog is 'kill'"));
  EXPECT_THAT(ErrorText<InvalidArgument>([] { Solver(Settings("warn", -1)); }),
              HasSubstr("watchdog_seconds is -1"));
}

// The test controls all time: nothing here depends on the machine's speed.
class WatchdogTest : public ::testing::Test {
 protected:
  // The watchdog's thread waits for its first check.
  std::unique_ptr<Watchdog> Watch(const std::string& what, Watchdog::GiveUp give_up = nullptr) {
    auto watchdog = std::make_unique<Watchdog>(Settings(what, 10), std::move(give_up));
    clock_->AwaitWaits(1);
    return watchdog;
  }

  ActivityClock clock_;
};

TEST_F(WatchdogTest, OffDoesNotLook) {
  { const Watchdog watchdog(Settings("off", 10), nullptr); }
  EXPECT_EQ(clock_->waits(), 0);
  { const Watchdog watchdog(Settings("warn", 10), nullptr); }
  EXPECT_EQ(clock_->waits(), 1);
}

TEST_F(WatchdogTest, WarnsAfterTheLimitAndAgainAtTwiceTheAge) {
  const Warnings warnings;
  const auto watchdog = Watch("warn", [](const std::string&) { ADD_FAILURE(); });
  const Activity activity("parser", "reads", "/data/cat.jpg");
  clock_->Advance(9900ms);
  EXPECT_THAT(warnings.texts(), IsEmpty());
  clock_->Advance(100ms);
  EXPECT_THAT(warnings.texts(), SizeIs(1));
  clock_->Advance(69s);
  EXPECT_THAT(warnings.texts(), ElementsAre(HasSubstr("(for 10 s)"), HasSubstr("(for 20 s)"),
                                            HasSubstr("(for 40 s)")));
  EXPECT_THAT(warnings.texts(), Each(AllOf(HasSubstr("No progress for 10 s"),
                                           HasSubstr("parser: reads /data/cat.jpg"))));
  EXPECT_EQ(watchdog->reason(), "");
  EXPECT_NO_THROW(watchdog->ThrowIfAborted());
}

// A test phase of many batches, an iteration of many steps.
TEST_F(WatchdogTest, WorkThatGetsFurtherMayTakeLong) {
  const Warnings warnings;
  const auto watchdog = Watch("abort", [](const std::string&) { ADD_FAILURE(); });
  const Activity iteration("compute", "computes iteration", "0");
  for (int batch = 0; batch < 5; ++batch) {
    const Activity testing("test", "computes a batch of test net", "0");
    clock_->Advance(9s);
  }
  for (int step = 0; step < 5; ++step) {
    clock_->Advance(9s);
    Activity::ReportProgress();
  }
  EXPECT_THAT(warnings.texts(), IsEmpty());
  EXPECT_EQ(watchdog->reason(), "");
}

TEST_F(WatchdogTest, TimeInWhichTheProcessIsStoppedDoesNotCount) {
  const Warnings warnings;
  const auto watchdog = Watch("warn");
  const Activity activity("parser", "reads", "/data/cat.jpg");
  clock_->Skip(1h);
  clock_->Advance(8s);
  EXPECT_THAT(warnings.texts(), IsEmpty());
  clock_->Advance(2s);
  EXPECT_THAT(warnings.texts(), SizeIs(1));
}

TEST_F(WatchdogTest, AbortInterruptsWhoHasWaitedTooLong) {
  int given_up = 0;
  const auto watchdog = Watch("abort", [&](const std::string&) { ++given_up; });
  Wait wait;
  clock_->Advance(10s);
  EXPECT_THAT(watchdog->reason(), HasSubstr("compute: waits for the test"));
  if (watchdog->reason().empty()) wait.Finish();
  const std::exception_ptr error = wait.Result();
  ASSERT_NE(error, nullptr);
  EXPECT_THAT(ErrorText<DeviceError>([&] { std::rethrow_exception(error); }),
              AllOf(HasSubstr("the watchdog ended the run"), HasSubstr("waits for the test")));
  EXPECT_EQ(given_up, 0);  // the run has the same time again to end
}

// Such a wait may belong to another solver in this process.
TEST_F(WatchdogTest, AbortLeavesShortWaitsAlone) {
  const auto watchdog = Watch("abort");
  const Activity reading("parser", "reads", "a pipe");
  for (int i = 0; i < 3; ++i) {
    Wait wait;
    clock_->Advance(9s);
    wait.Finish();
    EXPECT_EQ(wait.Result(), nullptr);
  }
  EXPECT_THAT(watchdog->reason(), HasSubstr("parser: reads a pipe"));
}

// A wait that begins after the watchdog has checked.
TEST_F(WatchdogTest, AbortInterruptsLaterWaitsToo) {
  const auto watchdog = Watch("abort");
  const Activity reading("parser", "reads", "a pipe");
  clock_->Advance(10s);
  EXPECT_THAT(watchdog->reason(), HasSubstr("parser: reads a pipe"));
  Wait wait;
  clock_->Advance(10s);
  EXPECT_NE(wait.Result(), nullptr);
}

TEST_F(WatchdogTest, ARunThatGoesOnIsEndedWhereItLooks) {
  const auto watchdog = Watch("abort");
  {
    const Activity computing("compute", "computes iteration", "7");  // nothing to interrupt
    clock_->Advance(10s);
  }
  EXPECT_THAT(ErrorText<DeviceError>([&] { watchdog->ThrowIfAborted(); }),
              HasSubstr("compute: computes iteration 7"));
}

TEST_F(WatchdogTest, GivesUpOnceWhereTheRunDoesNotEnd) {
  std::vector<std::string> given_up;
  const auto watchdog = Watch("abort", [&](const std::string& why) { given_up.push_back(why); });
  const Activity computing("compute", "computes iteration", "7");
  clock_->Advance(19s);
  EXPECT_THAT(given_up, IsEmpty());
  clock_->Advance(2s);
  EXPECT_THAT(given_up, ElementsAre(HasSubstr("computes iteration 7")));
  clock_->Advance(100s);
  EXPECT_THAT(given_up, SizeIs(1));
}

// Nobody advances the clock: the watchdog does not wait for its next check.
TEST_F(WatchdogTest, EndsAtOnce) {
  Watch("warn");
}

}  // namespace
}  // namespace caffe
