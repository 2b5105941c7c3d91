// A loop over all cores.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "caffe/core/processors.hpp"

namespace caffe::tools {

// Calls work(i) for each i below `count`, in any order. What one call throws is thrown here, once
// those that had begun are done.
template <typename Work>
void ParallelFor(size_t count, const Work& work) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr error;
  const auto run = [&] {
    try {
      for (size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      error = std::current_exception();
    }
  };
  const size_t wanted = std::min<size_t>(count, static_cast<size_t>(UsableProcessors()));
  {
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < wanted; ++i) threads.emplace_back(run);
    run();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace caffe::tools
