// The memory of a batch on its way round: the reader deals records to it, parsers fill it, the
// consumer reads it and gives it back.
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

// Memory at a 64-byte boundary; grows and never shrinks.
class BatchMemory {
 public:
  void* get() const { return memory_.get(); }
  // Whether it holds so much, and was made by `make` if that is given.
  bool Fits(size_t bytes, const HostMemory& make) const {
    return bytes <= bytes_ && (is_made_ || make == nullptr);
  }
  // Contents are lost where it does not fit.
  void Reserve(size_t bytes, const HostMemory& make);

 private:
  std::shared_ptr<void> memory_;
  size_t bytes_ = 0;
  bool is_made_ = false;
};

// Lets one thread wait until others have finished all parts of a batch.
class Completion {
 public:
  // Before the parts are dealt out.
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

  // The error of the first slot is kept, so that the message does not depend on timing.
  void Fail(int slot, std::exception_ptr error) {
    std::lock_guard lock(mutex_);
    if (error_ && error_slot_ <= slot) return;
    error_ = std::move(error);
    error_slot_ = slot;
  }

  // Wait() throws this and no longer waits for the parts.
  void Abandon(std::exception_ptr error) {
    std::lock_guard lock(mutex_);
    error_ = std::move(error);
    error_slot_ = -1;
    is_abandoned_ = true;
    finished_.notify_one();
  }

  // Throws what Fail() was given.
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
  // Converts images that were prepared in another form. Takes other memory for them: threads soon
  // fill batches in the form that is asked for.
  void ChangeForm(const BatchForm& form);

  std::vector<RecordSequence::Item> items;
  ImageExtents extents;        // of every image after the transform
  ImageExtents image_extents;  // of batches of bytes: before it
  BatchMemory data;
  BatchMemory images;  // of batches of bytes, in place of `data`
  std::vector<float> windows;
  std::vector<float> labels;
  std::vector<float> shown_sizes;
  std::vector<std::vector<ObjectBox>> boxes;  // of each item of annotated records
  Batch batch;                                // what the consumer sees
  Completion completion;
};

}  // namespace caffe::data
