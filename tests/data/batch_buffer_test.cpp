#include "caffe/data/batch_buffer.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

namespace caffe::data {
namespace {

TEST(CompletionTest, WaitThrowsWhatAbandonsIt) {
  Completion completion;
  completion.Start(2);
  completion.FinishPart();
  completion.Abandon(std::make_exception_ptr(std::runtime_error("now")));
  EXPECT_THROW(completion.Wait(), std::runtime_error);
}

// The watchdog may interrupt at the moment when the batch is ready.
TEST(CompletionTest, TheNextBatchIsWaitedForAgain) {
  Completion completion;
  completion.Start(1);
  completion.FinishPart();
  completion.Wait();
  completion.Abandon(std::make_exception_ptr(std::runtime_error("too late")));
  completion.Start(1);
  std::atomic<bool> is_filled = false;
  std::thread parser([&] {
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();  // a thread without waits is faster
    is_filled = true;
    completion.FinishPart();
  });
  completion.Wait();
  EXPECT_TRUE(is_filled);
  parser.join();
}

}  // namespace
}  // namespace caffe::data
