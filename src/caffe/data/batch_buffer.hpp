// The memory of a batch, which circulates: the reader assigns records to it, parsers fill it, the
// consumer reads it and returns it.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "caffe/data/batch.hpp"
#include "caffe/data/parsers/image_view.hpp"
#include "caffe/data/record_sequence.hpp"
#include "caffe/data/transformers/object_box.hpp"

namespace caffe::data {

// 64-byte aligned memory that grows and never shrinks.
class BatchMemory {
 public:
  void* get() const { return memory_.get(); }
  // True if it has `bytes` bytes and, if `make` is set, was allocated by it.
  bool Fits(size_t bytes, const HostMemory& make) const {
    return bytes <= bytes_ && (is_made_ || make == nullptr);
  }
  // Discards the contents if it has to reallocate.
  void Reserve(size_t bytes, const HostMemory& make);

 private:
  std::shared_ptr<void> memory_;
  size_t bytes_ = 0;
  bool is_made_ = false;
};

// Lets one thread wait until others have finished all parts of a batch.
class Completion {
 public:
  // Called before the parts are distributed.
  void Start(int parts) {
    std::lock_guard lock(mutex_);
    parts_left_ = parts;
    error_ = nullptr;
    is_abandoned_ = false;
  }

  void FinishPart() {
    std::lock_guard lock(mutex_);
    if (--parts_left_ == 0) finished_.notify_one();
  }

  // Keeps the error of the first slot, so that the message does not depend on timing.
  void Fail(int slot, std::exception_ptr error) {
    std::lock_guard lock(mutex_);
    if (error_ && error_slot_ <= slot) return;
    error_ = std::move(error);
    error_slot_ = slot;
  }

  // Makes Wait() throw this error without waiting for the parts.
  void Abandon(std::exception_ptr error) {
    std::lock_guard lock(mutex_);
    error_ = std::move(error);
    error_slot_ = -1;
    is_abandoned_ = true;
    finished_.notify_one();
  }

  // Rethrows the error of Fail().
  void Wait() {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [&] { return parts_left_ == 0 || is_abandoned_; });
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable finished_;
  int parts_left_ = 0;
  std::exception_ptr error_;
  int error_slot_ = 0;
  bool is_abandoned_ = false;
};

struct BatchBuffer {
  // Converts images that were prepared in another form. Uses separate memory, because threads will
  // soon fill batches in the requested form.
  void ChangeForm(const BatchForm& form);

  std::vector<RecordSequence::Item> items;
  ImageExtents extents;        // of every image after the transform
  ImageExtents image_extents;  // for batches of bytes: before the transform
  BatchMemory data;
  BatchMemory images;  // for batches of bytes, instead of `data`
  std::vector<float> windows;
  std::vector<float> labels;
  std::vector<float> shown_sizes;
  std::vector<std::vector<ObjectBox>> boxes;  // for each item of annotated records
  Batch batch;                                // the consumer's view
  Completion completion;
};

}  // namespace caffe::data
