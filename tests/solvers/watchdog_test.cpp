#include "caffe/solvers/watchdog.hpp"

#include <glog/logging.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "caffe/core/activity.hpp"
#include "caffe/error.hpp"
#include "caffe/solver.hpp"
#include "tests/support/error_text.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using ::testing::Each;
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

void SleepSeconds(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

// The log's warnings while it lives.
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

// A thread's wait that the watchdog may interrupt, as that for a batch.
class Wait {
 public:
  // Returns what interrupted it; null when Finish() came first.
  std::exception_ptr Run() {
    const Activity waiting("compute", "waits for", "the test",
                           [this](const std::exception_ptr& error) {
                             const std::lock_guard lock(mutex_);
                             error_ = error;
                             changed_.notify_all();
                           });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_finished_ || error_ != nullptr; });
    return error_;
  }

  void Finish() {
    const std::lock_guard lock(mutex_);
    is_finished_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_finished_ = false;
  std::exception_ptr error_;
};

TEST(WatchdogTest, RefusesWhatItDoesNotKnow) {
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

// Not at the first step, after minutes of reading weights and data.
TEST(WatchdogTest, ASolverIsNotMadeWithWhatItDoesNotKnow) {
  EXPECT_THAT(ErrorText<InvalidArgument>([] { Solver(Settings("kill", 1)); }),
              HasSubstr("watchdog is 'kill'"));
  EXPECT_THAT(ErrorText<InvalidArgument>([] { Solver(Settings("warn", -1)); }),
              HasSubstr("watchdog_seconds is -1"));
}

TEST(WatchdogTest, OffDoesNotLook) {
  const Warnings warnings;
  const Watchdog watchdog(Settings("off", 0.02f), nullptr);
  const Activity activity("compute", "computes", "x");
  SleepSeconds(0.15);
  EXPECT_THAT(warnings.texts(), IsEmpty());
}

TEST(WatchdogTest, WarnsAfterTheLimitAndAgainAtTwiceTheAge) {
  const Warnings warnings;
  const Watchdog watchdog(Settings("warn", 0.1f), [](const std::string&) { ADD_FAILURE(); });
  const auto begin = std::chrono::steady_clock::now();
  // A busy machine may make each sleep longer, so the clock tells how many warnings there can be.
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const Activity activity("parser", "reads", "/data/cat.jpg");
  SleepSeconds(0.06);
  const std::vector<std::string> early = warnings.texts();
  if (seconds() < 0.1) {
    EXPECT_THAT(early, IsEmpty());
  }
  SleepSeconds(0.54);
  const std::vector<std::string> texts = warnings.texts();  // at about 0.1, 0.2 and 0.4 s
  EXPECT_THAT(texts, Each(AllOf(HasSubstr("No progress for 0.1 s"),
                                HasSubstr("parser: reads /data/cat.jpg"))));
  EXPECT_GE(texts.size(), 1u);
  EXPECT_LE(texts.size(), 1 + std::log2(seconds() / 0.1));
  EXPECT_EQ(watchdog.reason(), "");
  EXPECT_NO_THROW(watchdog.ThrowIfAborted());
}

// A test phase of many batches, an iteration of many steps.
TEST(WatchdogTest, WorkThatGetsFurtherMayTakeLong) {
  const Warnings warnings;
  const Watchdog watchdog(Settings("abort", 0.3f), [](const std::string&) { ADD_FAILURE(); });
  const Activity iteration("compute", "computes iteration", "0");
  for (int batch = 0; batch < 20; ++batch) {
    const Activity testing("test", "computes a batch of test net", "0");
    SleepSeconds(0.02);
  }
  for (int step = 0; step < 20; ++step) {
    SleepSeconds(0.02);
    Activity::GetFurther();
  }
  EXPECT_THAT(warnings.texts(), IsEmpty());
  EXPECT_EQ(watchdog.reason(), "");
}

TEST(WatchdogTest, AbortInterruptsWhoHasWaitedTooLong) {
  std::atomic<int> given_up = 0;
  const Watchdog watchdog(Settings("abort", 0.1f), [&](const std::string&) { ++given_up; });
  Wait wait;
  const std::exception_ptr error = wait.Run();
  ASSERT_NE(error, nullptr);
  EXPECT_THAT(ErrorText<DeviceError>([&] { std::rethrow_exception(error); }),
              AllOf(HasSubstr("the watchdog ended the run"), HasSubstr("waits for the test")));
  EXPECT_THAT(watchdog.reason(), HasSubstr("compute: waits for the test"));
  EXPECT_EQ(given_up, 0);  // the run has as long as that to end
}

// Of another solver in this process, say.
TEST(WatchdogTest, AbortLeavesShortWaitsAlone) {
  const Watchdog watchdog(Settings("abort", 0.2f), nullptr);
  std::thread hanging([] {
    const Activity reading("parser", "reads", "a pipe");
    SleepSeconds(0.7);
  });
  for (int i = 0; i < 30; ++i) {
    Wait wait;
    std::thread other([&] {
      SleepSeconds(0.01);
      wait.Finish();
    });
    EXPECT_EQ(wait.Run(), nullptr);
    other.join();
  }
  hanging.join();
  EXPECT_THAT(watchdog.reason(), HasSubstr("parser: reads a pipe"));
}

// One that begins to wait after the watchdog has looked.
TEST(WatchdogTest, AbortInterruptsLaterWaitsToo) {
  const Watchdog watchdog(Settings("abort", 0.1f), nullptr);
  std::atomic<bool> is_done = false;
  std::thread hanging([&] {
    const Activity reading("parser", "reads", "a pipe");
    while (!is_done) SleepSeconds(0.01);
  });
  while (watchdog.reason().empty()) SleepSeconds(0.01);
  Wait wait;
  EXPECT_NE(wait.Run(), nullptr);
  is_done = true;
  hanging.join();
}

TEST(WatchdogTest, ARunThatGoesOnIsEndedWhereItLooks) {
  const Watchdog watchdog(Settings("abort", 0.05f), nullptr);
  {
    const Activity computing("compute", "computes iteration", "7");  // nothing to interrupt
    while (watchdog.reason().empty()) SleepSeconds(0.01);
  }
  EXPECT_THAT(ErrorText<DeviceError>([&] { watchdog.ThrowIfAborted(); }),
              HasSubstr("compute: computes iteration 7"));
}

TEST(WatchdogTest, GivesUpOnceWhereTheRunDoesNotEnd) {
  std::atomic<int> given_up = 0;
  std::string text;
  const Watchdog watchdog(Settings("abort", 0.05f), [&](const std::string& why) {
    text = why;
    ++given_up;
  });
  const Activity computing("compute", "computes iteration", "7");
  while (given_up == 0) SleepSeconds(0.01);
  SleepSeconds(0.2);
  EXPECT_EQ(given_up, 1);
  EXPECT_THAT(text, HasSubstr("computes iteration 7"));
}

TEST(WatchdogTest, EndsAtOnce) {
  const auto begin = std::chrono::steady_clock::now();
  { const Watchdog watchdog(Settings("warn", 300), nullptr); }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

}  // namespace
}  // namespace caffe
