// An unbounded queue between threads.
#pragma once

#include <condition_variable>
#include <mutex>
#include <queue>
#include <string>

#include "../common.hpp"

CAFFE_BVLC_BEGIN
template <typename T>
class BlockingQueue {
 public:
  BlockingQueue() : ended_(false) {}

  void push(const T& t) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      queue_.push(t);
    }
    changed_.notify_one();
  }

  bool try_pop(T* t) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (queue_.empty()) return false;
    *t = queue_.front();
    queue_.pop();
    return true;
  }

  // Waits for an element. Logs `log_on_wait`, unless empty, if the queue is empty.
  T pop(const string& log_on_wait = "") {
    std::unique_lock<std::mutex> lock(mutex_);
    if (queue_.empty() && !log_on_wait.empty()) {
      LOG_EVERY_N(INFO, 1000) << log_on_wait;
    }
    changed_.wait(lock, [this] { return !queue_.empty() || ended_; });
    if (queue_.empty()) return T();
    T front = queue_.front();
    queue_.pop();
    return front;
  }

  bool try_peek(T* t) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (queue_.empty()) return false;
    *t = queue_.front();
    return true;
  }

  T peek() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return !queue_.empty() || ended_; });
    return queue_.empty() ? T() : queue_.front();
  }

  size_t size() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return queue_.size();
  }

  // Ends waiting: blocked callers get T().
  void end() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::queue<T> queue_;
  bool ended_;

  DISABLE_COPY_AND_ASSIGN(BlockingQueue);
};

CAFFE_BVLC_END
