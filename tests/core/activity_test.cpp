#include "caffe/core/activity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <stdexcept>
#include <thread>

#include "tests/support/test_clock.hpp"

namespace caffe {
namespace {

using namespace std::chrono_literals;
using testing::ActivityClock;

std::vector<std::string> Texts(double seconds) {
  std::vector<std::string> texts;
  for (const Activity::Report& report : Activity::LongerThan(seconds)) texts.push_back(report.text);
  return texts;
}

TEST(ActivityTest, TheInnermostOfAThreadCounts) {
  const ActivityClock clock;
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
  ActivityClock clock;
  const Activity outer("compute", "computes", "x");
  clock->Advance(3s);
  EXPECT_EQ(Texts(3).size(), 1);
  { const Activity inner("test", "computes", "x"); }
  EXPECT_TRUE(Texts(1).empty());
}

TEST(ActivityTest, InterruptsThreadsThatWait) {
  const ActivityClock clock;
  std::latch waits(1);
  std::promise<std::exception_ptr> interrupted;
  std::exception_ptr error;
  std::thread waiting([&] {
    const Activity activity("compute", "waits for", "x",
                            [&](const std::exception_ptr& given) { interrupted.set_value(given); });
    waits.count_down();
    error = interrupted.get_future().get();
  });
  waits.wait();
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
  std::latch waits(1), begun(1), others_are_done(1);
  std::atomic<bool> has_ended = false;
  std::thread waiting([&] {
    {
      const Activity activity("compute", "waits for", "x", [&](const std::exception_ptr&) {
        begun.count_down();
        others_are_done.wait();
        EXPECT_FALSE(has_ended);
      });
      waits.count_down();
      begun.wait();
    }
    has_ended = true;
  });
  waits.wait();
  std::thread interrupting([] {
    EXPECT_TRUE(Activity::InterruptWaits(0, std::make_exception_ptr(std::runtime_error("now"))));
  });
  begun.wait();
  {
    const Activity other("reader", "reads", "y");
    EXPECT_EQ(Texts(0).size(), 2);
  }
  others_are_done.count_down();
  interrupting.join();
  waiting.join();
}

// The watchdog once hung in this case, and could no longer end the process.
TEST(ActivityTest, IssueAnInterruptionThatHangsIsNotWaitedFor) {
  std::latch waits(1), called(1), may_end(1);
  std::atomic<int> calls = 0;
  std::thread waiting([&] {
    const Activity activity("compute", "waits for", "x", [&](const std::exception_ptr&) {
      if (++calls == 1) called.count_down();
      may_end.wait();
    });
    waits.count_down();
    called.wait();
  });
  waits.wait();
  const auto now = std::make_exception_ptr(std::runtime_error("now"));
  EXPECT_TRUE(Activity::InterruptWaits(0, now, 20ms));
  EXPECT_FALSE(Activity::InterruptWaits(0, now, 20ms));  // the first has not ended
  may_end.count_down();
  waiting.join();
  EXPECT_EQ(calls, 1);
}

TEST(ActivityTest, StepsOfWorkMakeItYounger) {
  ActivityClock clock;
  Activity::ReportProgress();  // no activity: nothing happens
  const Activity outer("compute", "computes", "x");
  const Activity inner("compute", "computes", "y");
  clock->Advance(3s);
  EXPECT_EQ(Texts(3).size(), 1);
  Activity::ReportProgress();
  EXPECT_TRUE(Texts(1).empty());
}

TEST(ActivityTest, TimeThatTheProcessDidNotLiveThroughDoesNotCount) {
  ActivityClock clock;
  const Activity outer("compute", "computes", "x");
  const Activity inner("compute", "computes", "y");
  clock->Advance(60s);
  EXPECT_EQ(Texts(60).size(), 1);
  Activity::DiscountPause(40s);
  EXPECT_TRUE(Texts(21).empty());
  EXPECT_EQ(Texts(20).size(), 1);
  Activity::DiscountPause(1h);  // never younger than now
  EXPECT_EQ(Texts(0).size(), 1);
}

}  // namespace
}  // namespace caffe
