// An nvJPEG that decodes on the host, and its settings and counters for tests.
#pragma once

#include <atomic>
#include <functional>

#include "caffe/cuda/nvjpeg_library.hpp"

namespace cuda_on_host {

struct Nvjpeg {
  std::atomic<bool> is_missing = false;   // no library is found
  std::atomic<bool> has_hardware = true;  // the chip has its own decoder
  std::atomic<int> fails_with = 0;        // status that DecodeBatched returns instead
  std::atomic<int> files = 0, batches = 0, handles = 0;  // decoded files and batches, open handles
  std::atomic<int> refused = 0;        // batches with an unsupported file
  std::atomic<unsigned> delay_ms = 0;  // extra time per batch
  std::function<void()> after_batch;   // called while a batch's pixels are on the device

  static Nvjpeg& Get();
  void Reset();
};

}  // namespace cuda_on_host
