// StoredElements: the memory of a tensor's elements, which need not exist all the time.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>

#include "caffe/device/device.hpp"
#include "caffe/tensor/origin.hpp"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe {

// Elements are 0 until they are written, or those of an origin. Memory that was pinned stays, at
// the same address, because somebody may hold its address or have changed it. Memory that was only
// borrowed is freed when it is returned, if the elements have an origin. Several threads may pin
// and borrow at once, for nets that share weights.
class StoredElements {
 public:
  // Memory that stays; allocated, and filled from the origin, on the first call.
  void* Pin(Device& device, const TensorDesc& desc);
  bool is_pinned() const { return is_pinned_.load(std::memory_order_acquire); }
  // Memory that stays until as many calls of Return(). Pins elements that have no origin.
  void* Borrow(Device& device, const TensorDesc& desc);
  void Return();

  // Replaces the elements: in pinned memory at once, otherwise when they are needed.
  void SetOrigin(std::shared_ptr<const Origin> origin, Device& device, const TensorDesc& desc);
  // Where the elements are while they are not in memory; null if they are.
  std::shared_ptr<const Origin> AbsentFrom() const;

  // The pinned memory.
  const std::shared_ptr<void>& memory() const { return memory_; }
  void Replace(std::shared_ptr<void> memory, size_t bytes);
  // The size of the allocated memory; 0 if there is none.
  size_t bytes() const;

 private:
  std::shared_ptr<void> Loaded(Device& device, const TensorDesc& desc) const;

  mutable std::mutex mutex_;
  std::atomic<bool> is_pinned_ = false;  // memory_ then changes only by Replace()
  std::shared_ptr<void> memory_;
  size_t bytes_ = 0;
  std::shared_ptr<const Origin> origin_;  // null once the memory is pinned
  int borrowers_ = 0;
};

}  // namespace caffe
