#include "caffe/core/activity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace caffe {
namespace {

std::vector<std::string> Texts(double seconds) {
  std::vector<std::string> texts;
  for (const Activity::Report& report : Activity::LongerThan(seconds)) texts.push_back(report.text);
  return texts;
}

TEST(ActivityTest, TheInnermostOfAThreadCounts) {
  EXPECT_TRUE(Texts(0).empty());
  {
    const Activity outer("compute", "computes iteration", "7");
    EXPECT_THAT(Texts(0), ::testing::ElementsAre("compute: computes iteration 7"));
    {
      const Activity inner("snapshot", "writes", "x");
      EXPECT_THAT(Texts(0), ::testing::ElementsAre("snapshot: writes x"));
      EXPECT_TRUE(Texts(60).empty());
    }
    EXPECT_THAT(Texts(0), ::testing::ElementsAre("compute: computes iteration 7"));
  }
  EXPECT_TRUE(Texts(0).empty());
}

TEST(ActivityTest, AnOuterActivityIsAsOldAsItsLastInnerOne) {
  const Activity outer("compute", "computes", "x");
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(Texts(0.03).size(), 1);
  { const Activity inner("test", "computes", "x"); }
  EXPECT_TRUE(Texts(0.03).empty());
}

TEST(ActivityTest, InterruptsThreadsThatWait) {
  std::mutex mutex;
  std::condition_variable changed;
  std::exception_ptr error;
  bool waits = false;
  std::thread waiting([&] {
    const Activity activity("compute", "waits for", "x", [&](const std::exception_ptr& given) {
      const std::lock_guard lock(mutex);
      error = given;
      changed.notify_all();
    });
    std::unique_lock lock(mutex);
    waits = true;
    changed.notify_all();
    changed.wait(lock, [&] { return error != nullptr; });
  });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return waits; });
  }
  const Activity computing("compute", "computes", "x");  // is not interrupted
  const auto now = std::make_exception_ptr(std::runtime_error("now"));
  EXPECT_FALSE(Activity::InterruptWaits(60, now));  // nobody has waited for so long
  EXPECT_TRUE(Activity::InterruptWaits(0, now));
  waiting.join();
  EXPECT_THROW(std::rethrow_exception(error), std::runtime_error);
  EXPECT_FALSE(Activity::InterruptWaits(0, error));
}

// ncclCommAbort may hang.
TEST(ActivityTest, OthersBeginAndEndWhileAnInterruptionLasts) {
  std::promise<void> begun, others_are_done;
  std::atomic<bool> is_called = false, has_ended = false;
  std::thread waiting([&] {
    {
      const Activity activity("compute", "waits for", "x", [&](const std::exception_ptr&) {
        is_called = true;
        begun.set_value();
        others_are_done.get_future().wait();
        EXPECT_FALSE(has_ended);
      });
      while (!is_called) std::this_thread::yield();
    }
    has_ended = true;
  });
  while (Texts(0).empty()) std::this_thread::yield();
  std::thread interrupting([] {
    EXPECT_TRUE(Activity::InterruptWaits(0, std::make_exception_ptr(std::runtime_error("now"))));
  });
  begun.get_future().wait();
  auto others = std::async(std::launch::async, [] {
    const Activity other("reader", "reads", "y");
    return Texts(0).size();
  });
  const bool is_done = others.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  others_are_done.set_value();
  EXPECT_TRUE(is_done);
  EXPECT_EQ(others.get(), 2);
  interrupting.join();
  waiting.join();
}

// The watchdog once hung with it, and could not end the process any more.
TEST(ActivityTest, IssueAnInterruptionThatHangsIsNotWaitedFor) {
  std::promise<void> may_end;
  std::atomic<int> calls = 0;
  std::thread waiting([&] {
    const Activity activity("compute", "waits for", "x", [&](const std::exception_ptr&) {
      ++calls;
      may_end.get_future().wait();
    });
    while (calls == 0) std::this_thread::yield();
  });
  while (Texts(0).empty()) std::this_thread::yield();
  const auto now = std::make_exception_ptr(std::runtime_error("now"));
  const auto interrupt = [&] {
    return Activity::InterruptWaits(0, now, std::chrono::milliseconds(20));
  };
  auto interruptions = std::async(std::launch::async, [&] {
    const bool first = interrupt(), second = interrupt();  // the first has not ended
    return std::pair(first, second);
  });
  const bool is_done =
      interruptions.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  may_end.set_value();
  waiting.join();
  EXPECT_TRUE(is_done);
  EXPECT_EQ(interruptions.get(), std::pair(true, false));
  EXPECT_EQ(calls, 1);
}

TEST(ActivityTest, StepsOfWorkMakeItYounger) {
  Activity::GetFurther();  // no activity: nothing happens
  const Activity outer("compute", "computes", "x");
  const Activity inner("compute", "computes", "y");
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(Texts(0.03).size(), 1);
  Activity::GetFurther();
  EXPECT_TRUE(Texts(0.03).empty());
}

TEST(ActivityTest, TimeThatTheProcessDidNotLiveThroughDoesNotCount) {
  const Activity outer("compute", "computes", "x");
  {
    const Activity inner("compute", "computes", "y");
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    EXPECT_EQ(Texts(0.06).size(), 1);
    Activity::Excuse(std::chrono::milliseconds(40));
    EXPECT_TRUE(Texts(0.06).empty());
    EXPECT_EQ(Texts(0.02).size(), 1);
    Activity::Excuse(std::chrono::hours(1));  // never younger than now
    EXPECT_EQ(Texts(0).size(), 1);
  }
}

}  // namespace
}  // namespace caffe
