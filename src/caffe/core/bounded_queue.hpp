// BoundedQueue<T>: a fixed-capacity queue between threads, on a ring allocated once.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace caffe {

// Push blocks while full and returns false once closed; Pop blocks while empty and returns
// nullopt once closed and drained. Fail() closes the queue with an exception that the next
// Pop (after the queue is drained) rethrows in the consumer's thread, so that an error in a
// stage reaches the thread that waits for its result, instead of leaving it waiting forever.
template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : ring_(capacity) {}

  bool Push(T item) {
    std::unique_lock lock(mutex_);
    not_full_.wait(lock, [&] { return size_ < ring_.size() || closed_; });
    if (closed_) return false;
    ring_[(head_ + size_) % ring_.size()] = std::move(item);
    ++size_;
    not_empty_.notify_one();
    return true;
  }

  std::optional<T> Pop() {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [&] { return size_ > 0 || closed_; });
    if (size_ == 0) {
      if (error_) std::rethrow_exception(error_);
      return std::nullopt;
    }
    std::optional<T> item(std::move(ring_[head_]));
    head_ = (head_ + 1) % ring_.size();
    --size_;
    not_full_.notify_one();
    return item;
  }

  void Close() { CloseWith(nullptr); }
  void Fail(std::exception_ptr error) { CloseWith(std::move(error)); }

  size_t size() const {
    std::lock_guard lock(mutex_);
    return size_;
  }

 private:
  void CloseWith(std::exception_ptr error) {
    std::lock_guard lock(mutex_);
    if (!closed_) error_ = std::move(error);
    closed_ = true;
    not_full_.notify_all();
    not_empty_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable not_full_, not_empty_;
  std::vector<T> ring_;
  size_t head_ = 0, size_ = 0;
  bool closed_ = false;
  std::exception_ptr error_;
};

}  // namespace caffe
