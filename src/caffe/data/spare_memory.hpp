// Host memory that is made ahead of its use.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "caffe/device/host_memory.hpp"

namespace caffe::data {

// While memory is pinned, the driver may wait for all GPUs of the process, and one of them may be
// waiting for another. So the blocks of all batches are made with the first. Thread-safe.
class SpareMemory {
 public:
  // Makes `count` blocks.
  void Add(size_t count, size_t bytes, const HostMemory& make) {
    for (; count > 0; --count) {
      std::shared_ptr<void> block = make(bytes);
      const std::lock_guard lock(mutex_);
      bytes_ = bytes;
      blocks_.push_back(std::move(block));
    }
  }

  // A block of at least that size, made now if none is left or they are too small.
  std::shared_ptr<void> Take(size_t bytes, const HostMemory& make) {
    {
      const std::lock_guard lock(mutex_);
      if (!blocks_.empty() && bytes <= bytes_) {
        std::shared_ptr<void> block = std::move(blocks_.back());
        blocks_.pop_back();
        return block;
      }
    }
    return make(bytes);
  }

 private:
  std::mutex mutex_;
  size_t bytes_ = 0;  // of each block
  std::vector<std::shared_ptr<void>> blocks_;
};

}  // namespace caffe::data
