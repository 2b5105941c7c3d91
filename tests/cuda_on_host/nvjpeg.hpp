// An nvJPEG that decodes with the host, and what tests ask of it.
#pragma once

#include <atomic>
#include <functional>

#include "caffe/cuda/nvjpeg_library.hpp"

namespace cuda_on_host {

struct Nvjpeg {
  std::atomic<bool> is_missing = false;   // no library is found
  std::atomic<bool> has_hardware = true;  // the chip has a decoder of its own
  std::atomic<int> fails_with = 0;        // a status of DecodeBatched in place of work
  std::atomic<int> files = 0, batches = 0, handles = 0;  // decoded files and batches, open handles
  std::atomic<int> refused = 0;        // batches with a file that it does not take
  std::atomic<unsigned> delay_ms = 0;  // that a batch takes longer
  std::function<void()> after_batch;   // what happens while a batch's pixels are on the device

  static Nvjpeg& Get();
  void Reset();
};

}  // namespace cuda_on_host
