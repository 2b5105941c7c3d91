// Small copies from pageable host memory to a device that never wait for the device.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>

#include "caffe/cuda/pinned_memory.hpp"
#include "caffe/device/stream.hpp"

namespace caffe::cuda {

// The driver may wait for the stream before it reads pageable memory, so small copies go through a
// ring of pinned slots. A slot is reused when its last copy is done, usually long before its turn
// comes. Serves one stream; thread-safe.
class StagingRing {
 public:
  static constexpr size_t kSlots = 32, kSlotBytes = 8 << 10;
  // Copies of up to half of the ring use it.
  static bool Takes(size_t bytes) { return bytes <= kSlots / 2 * kSlotBytes; }

  using MakeEvent = std::function<std::unique_ptr<Event>()>;
  explicit StagingRing(MakeEvent make_event) : make_event_(std::move(make_event)) {}

  // copy(to, slot, bytes) must enqueue a copy of pinned memory on the stream.
  template <typename Copy>
  void Send(Stream& stream, void* device, const void* host, size_t bytes, const Copy& copy) {
    const std::lock_guard lock(mutex_);
    if (memory_ == nullptr) Make();
    for (size_t done = 0; done < bytes; done += kSlotBytes) {
      const size_t part = std::min(bytes - done, kSlotBytes);
      char* const slot = static_cast<char*>(memory_.get()) + next_ * kSlotBytes;
      Event& copied = *copied_[next_];
      copied.Synchronize();
      std::memcpy(slot, static_cast<const char*>(host) + done, part);
      copy(static_cast<char*>(device) + done, slot, part);
      stream.Record(copied);
      next_ = (next_ + 1) % kSlots;
    }
  }

 private:
  // All events at once, because later ones could be made while GPUs reduce.
  void Make() {
    for (std::unique_ptr<Event>& copied : copied_) copied = make_event_();
    memory_ = AllocatePinned(kSlots * kSlotBytes);
  }

  const MakeEvent make_event_;
  std::mutex mutex_;
  std::shared_ptr<void> memory_;
  std::array<std::unique_ptr<Event>, kSlots> copied_;
  size_t next_ = 0;
};

}  // namespace caffe::cuda
