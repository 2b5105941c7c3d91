#include "caffe/core/bounded_queue.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>

namespace caffe {
namespace {

TEST(BoundedQueueTest, FirstInFirstOut) {
  BoundedQueue<int> queue(3);
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(queue.Push(round * 3 + i));
    EXPECT_EQ(queue.size(), 3u);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(queue.Pop(), round * 3 + i);
  }
}

TEST(BoundedQueueTest, TakesItemsThatOnlyMove) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  queue.Push(std::make_unique<int>(5));
  EXPECT_EQ(**queue.Pop(), 5);
}

TEST(BoundedQueueTest, PushWaitsForRoom) {
  constexpr int kItems = 10'000;
  BoundedQueue<int> queue(3);
  std::atomic<int> pushed = 0;
  std::thread producer([&] {
    for (int i = 0; i < kItems; ++i) queue.Push(i), ++pushed;
  });
  for (int popped = 0; popped < kItems; ++popped) {
    EXPECT_LE(pushed, popped + 3);
    EXPECT_EQ(queue.Pop(), popped);
  }
  producer.join();
  EXPECT_EQ(pushed, kItems);
}

TEST(BoundedQueueTest, CloseDrainsThenEnds) {
  BoundedQueue<int> queue(2);
  queue.Push(1);
  queue.Close();
  EXPECT_FALSE(queue.Push(2));
  EXPECT_EQ(queue.Pop(), 1);
  EXPECT_EQ(queue.Pop(), std::nullopt);
}

TEST(BoundedQueueTest, CloseWakesBothSides) {
  BoundedQueue<int> empty(1), full(1);
  full.Push(1);
  std::thread consumer([&] { EXPECT_EQ(empty.Pop(), std::nullopt); });
  std::thread producer([&] { EXPECT_FALSE(full.Push(2)); });
  empty.Close();
  full.Close();
  consumer.join();
  producer.join();
}

TEST(BoundedQueueTest, FailureReachesTheConsumerAfterTheItems) {
  BoundedQueue<int> queue(2);
  queue.Push(1);
  queue.Fail(std::make_exception_ptr(std::runtime_error("disk on fire")));
  queue.Close();  // does not hide the first failure
  EXPECT_EQ(queue.Pop(), 1);
  EXPECT_THROW(queue.Pop(), std::runtime_error);
  EXPECT_THROW(queue.Pop(), std::runtime_error);
}

TEST(BoundedQueueTest, ManyThreadsLoseNothing) {
  BoundedQueue<int> queue(4);
  std::atomic<int> sum = 0;
  std::vector<std::thread> consumers, producers;
  for (int t = 0; t < 3; ++t) {
    consumers.emplace_back([&] {
      while (const std::optional<int> item = queue.Pop()) sum += *item;
    });
    producers.emplace_back([&] {
      for (int i = 1; i <= 200; ++i) queue.Push(i);
    });
  }
  for (std::thread& thread : producers) thread.join();
  queue.Close();
  for (std::thread& thread : consumers) thread.join();
  EXPECT_EQ(sum, 3 * 200 * 201 / 2);
}

}  // namespace
}  // namespace caffe
